"""Between the hooks and the recorder: one at a time, and no fault of ours gets out."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from inspect import CO_VARARGS
from types import FrameType
from typing import Any

from torch._C import DisableTorchFunction

from zerograd.runtime.forks import new_lock

_BESIDE = frozenset({"measured"})  # what happens to no gradient


class Guard:
    """Hears what the hooks tell and hands it on under a lock.

    An exception that the recorder raises on purpose passes, and so does one that a signal
    brings (a timeout, Ctrl-C), which may come between any two lines of ours. Any other
    is a fault of ours: it is told once, and from then on nothing is heard.

    Args:
        passes: tells whether an exception was raised on purpose.
        fail: takes the exception that was not.
    """

    backward_begins: Callable[..., None]
    backward_ends: Callable[..., None]
    clear_begins: Callable[..., None]
    clear_ends: Callable[..., None]
    step_begins: Callable[..., None]
    closure_begins: Callable[..., None]
    closure_returns: Callable[..., None]
    step_ends: Callable[..., None]
    clips: Callable[..., None]
    clipped: Callable[..., None]
    measured: Callable[..., None]
    scales: Callable[..., None]
    unscaled: Callable[..., None]
    scaler_step_begins: Callable[..., None]
    scaler_step_ends: Callable[..., None]
    scaler_updates: Callable[..., None]
    holds: Callable[..., None]
    registers: Callable[..., None]
    forwarded: Callable[..., None]
    capture_begins: Callable[..., None]
    capture_ends: Callable[..., None]
    replayed: Callable[..., None]

    def __init__(
        self,
        recorder: Any,
        passes: Callable[[Exception], bool],
        fail: Callable[[Exception], None],
    ) -> None:
        self._lock = new_lock(_anew(weakref.WeakMethod(self._lose_track)))
        self._passes = passes
        self._fail = fail
        self.is_deaf = False
        self._recorder = recorder
        for name in Guard.__annotations__:
            heard = self._guarded(getattr(recorder, name), ends_ride=name not in _BESIDE)
            setattr(self, name, heard)
        self.run = self._guarded(lambda act: act())
        recorder.protect = self.protect

    def protect(self, act: Callable[..., None]) -> Callable[..., None]:
        """Return `act` guarded: for what the recorder does in the course of a ride."""
        return self._guarded(act, ends_ride=False)

    def _guarded(self, act: Callable[..., None], *, ends_ride: bool = True) -> Callable[..., None]:
        lock, passes, recorder = self._lock, self._passes, self._recorder

        def guarded(*args: Any) -> None:
            if self.is_deaf:
                return
            try:
                with lock, DisableTorchFunction():  # no mode or subclass of the user's hears of it
                    if ends_ride and recorder.ride is not None:
                        recorder.end_ride()
                    act(*args)
            except Exception as error:
                if passes(error):
                    raise
                if _is_brought_by_a_signal(error):
                    self._lose_track()
                    raise
                self.is_deaf = True
                self._fail(error)
            except BaseException:
                self._lose_track()
                raise

        return guarded

    def _lose_track(self) -> None:
        """Begin anew: how much of a call was heard is not known."""
        try:
            with self._lock:
                self._recorder.lose_track()
        except Exception as error:
            self.is_deaf = True
            self._fail(error)


def _anew(lose_track: weakref.WeakMethod[Callable[[], None]]) -> Callable[[], None]:
    """Return what a forked child does if another thread was being heard: nobody knows how far."""

    def begin() -> None:
        act = lose_track()
        if act is not None:
            act()

    return begin


def _is_brought_by_a_signal(error: BaseException) -> bool:
    """Did a signal handler raise it? Such a function is given the frame that it interrupts."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_back is not None and any(each is frame.f_back for each in _arguments(frame)):
            return True
        trace = trace.tb_next
    return False


def _arguments(frame: FrameType) -> list[object]:
    code, values = frame.f_code, frame.f_locals
    given = [values.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & CO_VARARGS:
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        given += values.get(rest, ())
    return given
