"""Clips of gradients that are not there yet: the backward comes after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.emptiness import acts
from zerograd.static.engine.ir import Happening, Loop

if TYPE_CHECKING:
    from zerograd.static.engine.buckets import Buckets
    from zerograd.static.engine.flow import Flow

CLIPPED_TOO_SOON = (
    "gradients are clipped before backward() has filled them, so the clip does nothing"
)
_FILLS = (EventKind.BACKWARD, EventKind.ASSIGN)


def is_clipped_too_soon(clip: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Does every backward of the loop come after the clip, and the step after that?

    Inside a window older gradients may be there to clip; the newest never are. As with a
    step on nothing, what cannot be seen may have filled them.
    """
    assert clip.event is not None
    if clip.loop is None or clip.loop.pseudo or not _finds_nothing(clip, flow):
        return False
    mine = set(clip.event.buckets)
    inside = [
        each
        for each in buckets.happenings
        if each.event is not None
        and not mine.isdisjoint(each.event.buckets)
        and _is_within(each.loop, clip.loop)
    ]
    at = next(number for number, each in enumerate(inside) if each is clip)
    if any(each.kind in _FILLS for each in inside[:at]):
        return False
    later = [each for each in inside[at:] if each.kind in (*_FILLS, EventKind.STEP)]
    steps = [each for each in later if each.kind is EventKind.STEP and each.loop is clip.loop]
    if not steps or later[0].kind not in _FILLS or later[0].loop is not clip.loop:
        return False
    begin = getattr(clip.loop.node, "lineno", clip.spot.line)
    return not acts("\n".join(clip.unit.source.lines[begin : clip.spot.line - 1]))


def _finds_nothing(clip: Happening, flow: Flow) -> bool:
    """Is it empty there on some way after a step, and never filled by something unseen?"""
    assert clip.event is not None
    for bucket in clip.event.buckets:
        pairs = flow.reached[id(clip)].get(bucket, ())
        judged = [each for each in (flow.states[number] for number, _ in pairs) if each[0].stepped]
        if any(state.unknown or doubt for state, doubt in judged):
            return False
        if all(state.contributions for state, _ in judged):
            return False
    return True


def _is_within(loop: Loop | None, outer: Loop) -> bool:
    while loop is not None and loop is not outer:
        loop = loop.parent
    return loop is outer
