"""ZG201: losses of one loop that go back, and that the first step of another loop uses.

A validation that goes backward leaves its gradients to the next epoch's first batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.lifecycle.state import Contribution
from zerograd.rules import BY_CODE
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.shown import by_way_of, call_apart, code_of, name_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.identity.shown import Entrances

MESSAGE = "what this loop fills is never cleared, and {owner}.step() uses it in another one"
SAME_LINE = "what the call in {line} fills here is never cleared, and {owner}.step() uses it later"


def left_over(buckets: Buckets, flow: Flow, entrances: Entrances) -> Iterator[Finding]:
    """Yield the backwards whose gradients come into a loop that clears what it fills itself.

    There a step and a clear follow in every round, so that no round leaves anything to the next.
    """
    told: set[str] = set()
    for loss in buckets.happenings:
        step = _step_of(loss, buckets)
        if step is None:
            continue
        for found in _left(loss, step, flow):
            culprit = _culprit(found, loss, step, buckets)
            if culprit is not None and str(culprit.spot) not in told:
                told.add(str(culprit.spot))
                yield _finding(culprit, loss, step, buckets, entrances)


def _step_of(loss: Happening, buckets: Buckets) -> Happening | None:
    """Return the step on a loss, if that and a clear behind it come in each round of its loop."""
    if loss.kind is not EventKind.BACKWARD or loss.event is None:
        return None
    if loss.loop is None or loss.loop.pseudo or loss.inner or loss.behind:
        return None
    beside = _beside(loss, buckets)
    kinds = [each.kind for each in beside]
    if kinds.count(EventKind.STEP) != 1 or kinds.count(EventKind.BACKWARD) != 1:
        return None
    at = kinds.index(EventKind.STEP)
    ordered = beside.index(loss) < at and EventKind.CLEAR in kinds[at:]
    return beside[at] if ordered else None


def _beside(loss: Happening, buckets: Buckets) -> list[Happening]:
    """Return what each round of the loop does to the gradients that the loss fills."""
    assert loss.event is not None
    return [
        each
        for each in buckets.happenings
        if each.loop is loss.loop
        and each.event is not None
        and not each.inner
        and not each.behind
        and not set(each.event.buckets).isdisjoint(loss.event.buckets)
    ]


def _left(loss: Happening, step: Happening, flow: Flow) -> Iterator[Contribution]:
    """Yield what is there as the loss goes back, and what nobody has used."""
    assert loss.event is not None and step.event is not None
    for bucket in set(loss.event.buckets) & set(step.event.buckets):
        for number, _ in flow.reached.get(id(loss), {}).get(bucket, ()):
            state, doubt = flow.states[number]
            if not doubt and not state.unknown:
                yield from (each for each in state.contributions if not each.used_by)


def _culprit(
    left: Contribution, loss: Happening, step: Happening, buckets: Buckets
) -> Happening | None:
    """Return the backward that left it: of a loop beside, which neither steps nor clears.

    Another loop is around both. What was shown once before training begins spoils one step only.
    """
    assert step.event is not None
    around = [each for each in loops_around(loss.loop) if each is not loss.loop and not each.pseudo]
    for each in buckets.happenings:
        if (
            each.kind is EventKind.BACKWARD
            and each is not loss
            and each.spot == left.spot
            and each.event is not None
            and step.event.owner in each.event.fills
            and each.loop is not None
            and not each.loop.pseudo
            and each.loop not in around
            and each.loop is not loss.loop
            and loss.loop not in (outer := loops_around(each.loop))
            and any(one in outer for one in around)
        ):
            return each
    return None


def _finding(
    culprit: Happening, loss: Happening, step: Happening, buckets: Buckets, entrances: Entrances
) -> Finding:
    rule, owner = BY_CODE["ZG201"], name_of(step)
    clear = next(each for each in _beside(loss, buckets) if each.kind is EventKind.CLEAR)
    call = call_apart(culprit, loss, entrances)
    message = MESSAGE.format(owner=owner)
    advice = f"leave this backward() out, or call {code_of(clear)} after the loop"
    if call is not None:  # one line is both, so it cannot be left out
        line = f"line {call.line}" if call.path == culprit.spot.path else f"{call.path}:{call.line}"
        message = SAME_LINE.format(owner=owner, line=line)
        advice = f"call backward() only where {code_of(step)} follows, or clear after {line}"
    stations = (
        (culprit, "fills the gradients, which nobody clears"),
        (loss, "adds onto them in another loop"),
        (step, "steps on both"),
    )
    finding = Finding(
        rule=rule,
        spot=culprit.spot,
        message=message,
        advice=advice,
        owner=owner,
        trail=tuple(TrailStep(each.spot, text, code_of(each)) for each, text in stations),
    )
    return by_way_of(finding, (culprit, loss, step), entrances)
