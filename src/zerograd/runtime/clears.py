"""Clears by a call: `zero_grad` of an optimizer or a module."""

from __future__ import annotations

import inspect
import sys
from types import CodeType
from typing import TYPE_CHECKING, Any

from torch.nn import Module

from zerograd.lifecycle.events import Event, EventKind
from zerograd.runtime import ride
from zerograd.runtime.chosen import is_chosen

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder


class Clears:
    """Hears the clears, for the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._finite = True

    def begins(self, holder: Any, to_none: bool) -> None:
        recorder = self._recorder
        backwards = recorder.backwards
        backwards.threads.add(backwards.thread())
        recorder.steps.before_clear(holder)
        if backwards.under_way:
            self._fill_inside(holder)
        watched = recorder.leaves.watched
        if watched or not recorder.memo.node.filled:
            recorder.unseen.before_clear(backwards.in_sight())
        if not recorder.memo.node.unused and not watched:
            return
        mask = recorder.owners.mask_of(holder, backwards.around() is not None)
        if watched:
            recorder.leaves.before_clear(mask, recorder.sites.here(3))
        unused = recorder.memo.node.unused
        dropped = [each for each in recorder.partition.buckets if each.bit & mask]
        dropped = [each for each in dropped if each.name in unused]
        if dropped:
            site = recorder.sites.here(3)
            self._finite = recorder.looks.is_finite(dropped, site)
            for bucket in dropped:
                recorder.leaves.sight(bucket, site)

    def _fill_inside(self, holder: Any) -> None:
        """A hook of a gradient clears: what the backward under way has left comes before that."""
        recorder = self._recorder
        opened = recorder.backwards.around()
        mask = recorder.owners.mask_of(holder, True)
        if opened is None or not mask:
            return
        before = opened.filled_inside
        held = tuple(each for each in recorder.partition.buckets if each.bit & mask)
        recorder.backwards.fill_inside(opened, held)
        if opened.filled_inside != before:
            recorder.rounds.spoil()

    def ends(self, holder: Any, to_none: bool) -> None:
        finite, self._finite = self._finite, True
        recorder = self._recorder
        goes_on = recorder.backwards.around() is not None
        mask = recorder.owners.mask_of(holder, goes_on)
        thread = recorder.backwards.thread()
        for bucket in recorder.partition.buckets:
            if bucket.bit & mask:
                bucket.thread = thread
                bucket.doubt = False
                bucket.look()
        if not mask:
            return
        recorder.counts[ride.CLEAR] += 1
        site = recorder.sites.here(3)
        owner = recorder.owners.known(holder)
        if owner is not None and not owner.display:
            recorder.call(owner, site.receiver)
        name = owner.name if owner is not None else site.receiver
        closure = recorder.steps.filling_closure()
        key = (EventKind.CLEAR, site, name, mask, to_none, finite, closure, goes_on)
        symbol = recorder.symbols.get(key)
        if symbol is None:
            event = Event(
                EventKind.CLEAR,
                name,
                site.spot,
                recorder.names_of(mask),
                site.text,
                to_none=to_none,
                inside=is_inside(holder, closure),
                finite=finite,
                chosen=is_chosen(),
            )
            symbol = recorder.new(key, event, recorder.call_here(ride.CLEAR, holder))
            symbol.goes_on = goes_on
        recorder.feed(symbol)


def code_of(value: Any) -> CodeType | None:
    """Return the code of a function, the innermost one where it is wrapped."""
    try:
        code = getattr(inspect.unwrap(value), "__code__", None)
    except Exception:  # an object that pretends to have every attribute
        return None
    return code if isinstance(code, CodeType) else None


def is_inside(holder: Any, closure: CodeType | None) -> bool:
    """Is the clear that goes on called by a method of the optimizer itself, as SAM's is?

    Args:
        closure: of the user's, which the optimizer has called; what that calls is the user's too.
    """
    if isinstance(holder, Module):
        return False
    # Wrappers share their code among many functions; only the innermost tells who is running.
    codes = {
        code_of(value)
        for kind in type(holder).__mro__
        for name, value in vars(kind).items()
        if name != "zero_grad" and callable(value)
    }
    codes.discard(None)
    frame = sys._getframe(2).f_back
    while frame is not None:
        if frame.f_code is closure:
            return False
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False
