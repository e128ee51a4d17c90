"""ZG102: a loss that goes backward in each round, and that a clear throws away on every path.

    opt.step()
    other_loss.backward()  # and the next round begins with opt.zero_grad()

The loop steps on another loss of the same weights, so its step finds something. What this one has
filled, no step ever uses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.lifecycle.looking import looks, sees_each_backward
from zerograd.rules import BY_CODE
from zerograd.rules.lost_gradient import AFTER, BEFORE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.keys import spelled, touches
from zerograd.static.engine.identity.shown import code_of, name_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from zerograd.lifecycle.state import BucketState
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

_KINDS = (EventKind.BACKWARD, EventKind.ASSIGN, EventKind.STEP, EventKind.CLEAR)


def wasted(
    program: Program, buckets: Buckets, flow: Flow, told: Collection[Finding]
) -> Iterator[Finding]:
    """Yield the losses of a loop that surely fill what it steps on, and that no step uses.

    Args:
        told: what was found already: of those weights, this may be another view of it.
    """
    losses = [each for each in buckets.happenings if _is_plain(each)]
    if len(losses) < 2:
        return  # most roots
    spoken = {each.owner for each in told if each.certain}
    used: set[str] | None = None
    for loss in losses:
        filled = _surely_filled(loss, losses, buckets)
        pair = _cleared_and_stepped(loss, filled, losses, buckets)
        if pair is None:
            continue
        used = _used(buckets, flow) if used is None else used
        clear, step = pair
        if _id_of(loss) in used or name_of(step) in spoken:
            continue
        if _is_found(loss, filled, clear, flow) and not _is_for_reading(loss, program):
            yield _finding(loss, clear, step, buckets)
            return


def _is_plain(each: Happening) -> bool:
    return (
        each.kind is EventKind.BACKWARD
        and each.event is not None
        and each.loop is not None
        and each.sure
        and bool(each.keys)
        and not each.leaf
        and not each.rescues
    )


def _cleared_and_stepped(
    loss: Happening, filled: set[str], losses: list[Happening], buckets: Buckets
) -> tuple[Happening, Happening] | None:
    """Return the clear after a loss, round the loop if need be, and a step on all that it fills."""
    assert loss.loop is not None
    if not filled:
        return None  # it may well be about something else
    here = [
        each
        for each in buckets.happenings
        if each.kind in _KINDS
        and each.event is not None
        and not filled.isdisjoint((*each.event.buckets, *each.partial))
    ]
    beyond = [each for each in here if each.loop is not loss.loop]
    here = [each for each in here if each.loop is loss.loop]
    if any(each.kind is not EventKind.CLEAR for each in beyond):
        return None
    if any(each.frames != loss.frames for each in here):
        return None
    steps = [each for each in here if each.kind is EventKind.STEP]
    if any(each.optimizer is None or each.optimizer.picked for each in steps):
        return None
    at = here.index(loss)
    later = here[at + 1 :] if loss.loop.pseudo else here[at + 1 :] + here[:at]
    nearest = next((each for each in later if each.kind is not EventKind.BACKWARD), None)
    if nearest is None or nearest.kind is not EventKind.CLEAR or nearest.rescues:
        return None
    assert nearest.event is not None
    needed = nearest.guards <= loss.guards and nearest.behind <= loss.behind
    own = [each for each in steps if filled <= set(each.event.buckets)]  # type: ignore[union-attr]
    if not needed or not own or not filled <= set(nearest.event.buckets):
        return None
    # The loop steps on another loss in each round, and clears for it.
    step = own[0]
    others = [each for each in here[: here.index(step)] if each in losses and each is not loss]
    if len(steps) > 1 or step.inner or all(each.inner - step.guards for each in others):
        return None
    whole = [each for each in buckets.happenings if each.loop is loss.loop]
    at = whole.index(loss)
    around = whole[at + 1 :] + whole[:at]
    around = around[: around.index(nearest)]
    apart = _others_have_their_own(around) and not _is_handed_on(loss, nearest, step)
    return (nearest, step) if apart else None


def _surely_filled(loss: Happening, losses: list[Happening], buckets: Buckets) -> set[str]:
    """Return what a loss fills, where that is known: by its networks, or by a loss like it.

    Nobody sees what `train(net, opt)` has in its optimizer. A loss through the very same networks
    that comes after this one is what a step is for; then this one fills the same.
    """
    assert loss.event is not None
    filled, keys = set(loss.event.buckets), loss.keys or ()
    if all(any(touches(key, bucket) for key in keys) for bucket in filled):
        return filled
    owners = {
        owner
        for each in losses[losses.index(loss) + 1 :]
        if each.keys == loss.keys and each.event is not None
        for owner in each.event.fills
    }
    if len(owners) != 1:
        return set()
    return {
        bucket
        for each in buckets.happenings
        if each.kind is EventKind.STEP and each.event is not None and each.event.owner in owners
        for bucket in each.event.buckets
    } & filled


def _others_have_their_own(around: list[Happening]) -> bool:
    """Has each step of another optimizer, up to the clear, a surer loss of its own behind this?"""
    for at, step in enumerate(around):
        if step.kind is EventKind.STEP and step.event is not None:
            mine = set(step.event.buckets)
            own = [each for each in around[:at] if _is_plain(each) and each.event is not None]
            if not any(mine <= set(each.event.buckets) for each in own if each.event is not None):
                return False
    return True


def _is_handed_on(loss: Happening, clear: Happening, step: Happening) -> bool:
    """Is a network of the loss, or its optimizer, handed to some function before the clear?

    It may look at what is there.
    """
    first, last = loss.spot.line, clear.spot.line
    names = {spelled(key) for key in loss.keys or ()} | {name_of(step)}
    calls = _calls_around(loss)
    names |= {path_of(each.func) for each in calls} - {""}  # a network as the function calls it
    for each in calls:
        between = first < each.lineno < last if first < last else not last <= each.lineno <= first
        given = [*each.args, *(word.value for word in each.keywords)]
        if between and any(path_of(one) in names for one in given):
            return True
    return False


def _calls_around(loss: Happening) -> list[ast.Call]:
    """Return the calls of the loop around a loss, or of its function where it has none."""
    assert loss.loop is not None
    functions = loss.unit.functions_around(loss.spot.line)
    node = loss.loop.node or (functions[-1] if functions else loss.unit.source.tree)
    return [each for each in loss.unit.parts_of(node) if isinstance(each, ast.Call)]


def _id_of(loss: Happening) -> str:
    assert loss.event is not None
    return loss.event.backward or str(loss.event.spot)


def _used(buckets: Buckets, flow: Flow) -> set[str]:
    """Return the losses that some step finds."""
    return {
        each.backward
        for step in buckets.happenings
        if step.kind is EventKind.STEP and step.event is not None
        for state in _states(step, step.event.buckets, flow)
        for each in state.contributions
    }


def _states(node: Happening, buckets: Collection[str], flow: Flow) -> Iterator[BucketState]:
    reached = flow.reached.get(id(node), {})
    for bucket in buckets:
        for number, _ in reached.get(bucket, ()):
            yield flow.states[number][0]


def _is_found(loss: Happening, filled: set[str], clear: Happening, flow: Flow) -> bool:
    """Does the clear find it in all that it fills, and nothing there that cannot be told?"""
    assert loss.event is not None
    for bucket in filled:
        states = list(_states(clear, (bucket,), flow))
        if any(each.unknown for each in states):
            return False
        if not any(one.backward == _id_of(loss) for each in states for one in each.contributions):
            return False
    return True


def _is_for_reading(loss: Happening, program: Program) -> bool:
    """Does the function around it look at gradients, or measure? Or does a hook anywhere?"""
    lines = loss.unit.source.lines
    around = loss.unit.functions_around(loss.spot.line)
    first, last = (around[-1].lineno, around[-1].end_lineno or 0) if around else (1, len(lines))
    text = "\n".join(line.split("#", 1)[0] for line in lines[first - 1 : last])
    return looks(text) or any(sees_each_backward(each.source.text) for each in program.units())


def _finding(loss: Happening, clear: Happening, step: Happening, buckets: Buckets) -> Finding:
    rule, owner = BY_CODE["ZG102"], name_of(step)
    order = buckets.happenings
    after = order.index(clear) < order.index(loss)
    stations = (
        (loss, "fills the gradients"),
        (clear, "throws them away, in the next round" if after else "throws them away"),
    )
    move = f"call backward() before {code_of(step)}" if after else f"clear before {code_of(loss)}"
    return Finding(
        rule=rule,
        spot=loss.spot if after else clear.spot,
        message=(AFTER if after else BEFORE).format(owner=owner),
        advice=f"{move}, or leave this loss out",
        owner=owner,
        trail=tuple(TrailStep(each.spot, text, code_of(each)) for each, text in stations),
    )
