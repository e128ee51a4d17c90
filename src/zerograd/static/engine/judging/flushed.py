"""ZG101: a step for what the last window of an epoch left, behind which nothing clears.

    for i, x in enumerate(data):
        (net(x).mean() / k).backward()
        if (i + 1) % k == 0:
            opt.step()
            opt.zero_grad()
    opt.step()  # the first window of the next epoch is added onto what this has used

The loop clears behind its own step, so most of what that finds is right. What it finds after this
step is not, on any path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.state import BucketState, Phase
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.ir import Happening

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

CLEAR_THERE = "call {owner}.zero_grad() behind {step} in line {line} as well"


def flushed_before(
    step: Happening, program: Program, buckets: Buckets, flow: Flow
) -> tuple[Happening, BucketState] | None:
    """Return the step behind the loop of this one whose gradients it steps on again, and how."""
    if not _is_plain(step) or step.loop is None or step.loop.pseudo:
        return None
    for last in buckets.happenings:
        if _is_plain(last) and _comes_behind(last, step, buckets):
            state = _added(step, last, flow)
            if state is not None and not _tells_an_epoch(program, last):
                return last, state
    return None


def _is_plain(each: Happening) -> bool:
    return (
        each.kind is EventKind.STEP
        and each.event is not None
        and each.optimizer is not None
        and not each.optimizer.picked
        and "[*]" not in each.event.owner
        and not each.rescues
    )


def _comes_behind(last: Happening, step: Happening, buckets: Buckets) -> bool:
    """Does one step stand behind the loop of the other, which alone clears, behind its own?"""
    assert last.event is not None and step.event is not None
    if last.event.owner != step.event.owner or step.loop is None or step.loop.pseudo:
        return False
    around = loops_around(step.loop)[1:]
    if last.loop not in around or last.loop is None or last.loop.pseudo:
        return False
    order = buckets.happenings
    if order.index(last) < order.index(step):
        return False
    mine = set(step.event.buckets)
    here = [
        each
        for each in order
        if each.event is not None
        and last.loop in loops_around(each.loop)
        and not mine.isdisjoint((*each.event.buckets, *each.partial))
    ]
    clears = [each for each in here if each.kind is EventKind.CLEAR]
    behind = order.index(step)
    return bool(clears) and all(
        each.loop is step.loop and order.index(each) > behind for each in clears
    )


def _added(step: Happening, last: Happening, flow: Flow) -> BucketState | None:
    """Return a state in which the step finds what `last` has used, and more on top of it."""
    assert step.event is not None
    found = None
    for bucket in step.event.buckets:
        for number, _ in flow.reached.get(id(step), {}).get(bucket, ()):
            state, doubt = flow.states[number]
            if doubt or state.unknown:
                return None
            old = [each for each in state.contributions if each.used_at == last.spot]
            if old and state.phase(step.event.owner) is Phase.STALE:
                found = found or state
    return found


def _tells_an_epoch(program: Program, last: Happening) -> bool:
    """Is it made in one round only of the loop around, the last perhaps?"""
    atoms = [program.atoms.get(key) for key in last.inner]
    return last.loop is not None and any(
        atom is not None and any(last.loop.binds(each.partition("#")[0]) for each in atom.names)
        for atom in atoms
    )
