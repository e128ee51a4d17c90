"""Steps of one optimizer where another's was meant: one fault, told at that step.

    critic_opt.step()
    actor_loss.backward()
    critic_opt.step()

The actor's gradients are never used, and the critic is moved twice: to clear it in between would
hide the mistake.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.shown import code_of, name_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets

_TWICE = frozenset(("ZG101", "ZG402"))


def told_as_one(
    found: list[Finding], unused: list[Finding], buckets: Buckets, told_of: set[Spot]
) -> list[Finding]:
    """Return both kinds, less the unused optimizers that a step of another one should have been.

    Where those are told already is added to `told_of`.
    """
    if not unused or not any(each.rule.code in _TWICE and each.certain for each in found):
        return [*found, *unused]
    told: list[Finding] = []
    left = list(unused)
    for each in found:
        if each.rule.code in _TWICE and each.certain:
            meant = [one for one in left if _is_meant(one, each, buckets)]
            if len(meant) == 1:
                left.remove(meant[0])
                told_of.add(meant[0].spot)
                step = next(one for one in buckets.happenings if one.spot == each.spot)
                other = code_of(step).replace(name_of(step), meant[0].owner)
                each = replace(each, advice=f"call {other} here: nothing steps {meant[0].owner}")
        told.append(each)
    return [*told, *left]


def _is_meant(unused: Finding, twice: Finding, buckets: Buckets) -> bool:
    """Is one optimizer cleared and filled in the loop in which the other steps twice?

    The last loss before that step has filled it.
    """
    steps = [each for each in buckets.happenings if each.spot == twice.spot]
    clears = [each for each in buckets.happenings if each.spot == unused.spot]
    if len(steps) != 1 or len(clears) != 1 or not unused.certain:
        return False
    (step,), (clear,) = steps, clears
    if step.event is None or clear.event is None or clear.loop is not step.loop:
        return False
    before = buckets.happenings[: buckets.happenings.index(step)]
    here = [each for each in before if each.loop is step.loop and each.event is not None]
    again = any(each.kind is EventKind.STEP and _owner(each) == _owner(step) for each in here)
    losses = [each for each in here if each.kind is EventKind.BACKWARD and each.event is not None]
    last = losses[-1].event if losses else None
    filled = last is not None and not set(clear.event.buckets).isdisjoint(last.buckets)
    return again and filled and bool(unused.owner) and bool(name_of(step))


def _owner(each: Happening) -> str:
    return each.event.owner if each.event is not None else ""
