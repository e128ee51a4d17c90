"""Hearing of each backward: we stand in for the logger that torch's engine asks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from sys import _getframe
from typing import Any

import torch
from torch.autograd import graph as autograd_graph

from zerograd.runtime.torch_facts import ENGINE_CODE, Roots, is_filling

Begin = Callable[[Roots], Callable[[], None]]


class EngineLog:
    """Stands in for the logger that torch asks before each run of the backward engine.

    The engine's own function asks its logger for a level, lets a second function
    hook the graph if that is DEBUG, and undoes it in a `finally`. Being that pair
    puts us before and after each backward with no frame of ours on the stack in
    between, so an exception from inside has the traceback it always had.
    """

    __slots__ = ("_begin", "_real", "_register", "ride_on")

    @staticmethod
    def of(real: logging.Logger, register: Callable[[Roots], Any], begin: Begin) -> EngineLog:
        """Return one that is `real` in all else: of its class, and with its attributes."""
        level, ride_on = _level_of(real)
        members = {"__slots__": (), level.__name__: level}
        kind: Any = type("EngineLog", (EngineLog, type(real)), members)
        made: Any = kind.__new__(kind)
        made.__dict__ = vars(real)
        made._real, made._register, made._begin = real, register, begin
        made.ride_on = ride_on
        return made  # type: ignore[no-any-return]

    _begin: Begin
    _real: logging.Logger
    _register: Callable[[Roots], Any]
    ride_on: Callable[[Any], None]  # tells it the ride that ticks calls off, or None

    def register(self, roots: Roots) -> Callable[[], None]:
        """Take the place of the function that hooks the graph; return how to undo it."""
        if not is_filling(_getframe(2)):
            return self._register(roots)  # type: ignore[no-any-return]
        if self._real.getEffectiveLevel() > logging.DEBUG:
            return self._begin(roots)
        undo, end = self._register(roots), self._begin(roots)

        def both() -> None:
            undo()
            end()

        return both


def _level_of(real: logging.Logger) -> tuple[Callable[[Any], int], Callable[[Any], None]]:
    """Return what the engine asks for a level, and what tells it of a ride.

    DEBUG lets us hear of the backward: not while a ride ticks calls off, and not of
    `autograd.grad`, which fills nothing.
    """
    ride: Any = None
    frame_at = _getframe
    # What the logger remembers of levels; it forgets when one is set.
    levels: dict[Any, int] = getattr(real, "_cache", {})

    def ride_on(new: Any) -> None:
        nonlocal ride
        ride = new

    def getEffectiveLevel(self: EngineLog) -> int:
        going = ride
        if going is None:
            if is_filling(frame_at(2)):
                return logging.DEBUG
        else:
            leg = going.leg
            try:
                frame = frame_at(leg.near)
            except ValueError:
                frame = frame_at()
            # As in `Ride.ticks`, written out: a call of it would cost more than all the rest.
            if frame.f_lasti == leg.at and frame.f_code is leg.code:
                note = leg.note
                if note is not None:
                    note()
                turn = leg.turn
                if turn is None:
                    going.leg = leg.next
                elif left := going.left:
                    going.left = left - 1
                    going.leg = leg.next
                else:
                    turn()
            elif not going.ticks(0) and is_filling(frame_at(2)):
                return logging.DEBUG
        try:
            return levels["zerograd"]
        except KeyError:  # the first time, and after anyone has set a level
            level = real.getEffectiveLevel()
            if "_cache" in vars(real):
                levels["zerograd"] = level
            return level

    return getEffectiveLevel, ride_on


def engine_patches(begin: Begin) -> list[tuple[Any, str, Any]]:
    """Return the replacements (object, name, value) that call `begin` before each backward."""
    names = ("log", "_register_logging_hooks_on_whole_graph")
    if not set(names) <= set(ENGINE_CODE.co_names):
        return _engine_wrapper(begin)
    real = autograd_graph.log
    register = autograd_graph._register_logging_hooks_on_whole_graph
    stand_in = EngineLog.of(real, register, begin)
    return [
        (autograd_graph, names[0], stand_in),
        (autograd_graph, names[1], stand_in.register),
    ]


def _engine_wrapper(begin: Begin) -> list[tuple[Any, str, Any]]:
    """For a torch whose engine asks no logger: wrap the engine's function."""
    original = autograd_graph._engine_run_backward

    def run_backward(roots: Roots, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if not kwargs.get("accumulate_grad"):
            return original(roots, *args, **kwargs)
        end = begin(roots)
        try:
            return original(roots, *args, **kwargs)
        finally:
            end()

    name = "_engine_run_backward"
    return [(torch.autograd, name, run_backward), (autograd_graph, name, run_backward)]
