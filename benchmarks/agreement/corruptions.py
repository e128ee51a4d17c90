"""Spoil one transition or one recogniser of one witness: the two must then disagree.

A comparison that would not notice a wrong machine proves nothing about a right one. Each
corruption here is put on for a while, and some program shows it: one on which the witnesses
agree as they are, and no longer do with it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from zerograd.lifecycle import judge, machine
from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.state import BucketState, Contribution, Phase
from zerograd.static import engine
from zerograd.static.engine.identity.values import NOTHING

_K = EventKind
Advance = Callable[[BucketState, Event, str], BucketState]


@dataclass(frozen=True, slots=True)
class Corruption:
    """One thing that one witness gets wrong."""

    name: str
    put_on: Callable[[], list[tuple[Any, str, Any]]]  # what to replace by what, and where

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the witness be wrong inside the block."""
        undo = []
        try:
            for place, name, value in self.put_on():
                undo.append((place, name, _get(place, name)))
                _set(place, name, value)
            yield
        finally:
            for place, name, value in reversed(undo):
                _set(place, name, value)


def _get(place: Any, name: Any) -> Any:
    return place[name] if isinstance(place, dict) else getattr(place, name)


def _set(place: Any, name: Any, value: Any) -> None:
    if isinstance(place, dict):
        place[name] = value
    else:
        setattr(place, name, value)


# Transitions.


def _phase(state: BucketState) -> Phase:
    """Return the phase that anybody sees."""
    used = [bool(each.used_by) for each in state.contributions]
    if not used:
        return Phase.EMPTY
    return Phase.SPENT if all(used) else Phase.STALE if any(used) else Phase.FRESH


def _wrong_cell(kind: EventKind, phase: Phase) -> Advance:
    """Return a machine that goes to another phase for this event in this phase."""

    def advance(state: BucketState, event: Event, bucket: str) -> BucketState:
        after = machine.advance(state, event, bucket)
        if event.kind is not kind or bucket not in event.reach or _phase(state) is not phase:
            return after
        if after.contributions:
            return after._replace(contributions=())
        kept = state.contributions or (Contribution("made up", event.spot, event.fills),)
        return after._replace(contributions=kept)

    return advance


def _unmarked(kind: EventKind, mark: str) -> Advance:
    """Return a machine that leaves a mark as it was at this event."""

    def advance(state: BucketState, event: Event, bucket: str) -> BucketState:
        after = machine.advance(state, event, bucket)
        return after._replace(**{mark: getattr(state, mark)}) if event.kind is kind else after

    return advance


def _never_early() -> Advance:
    def advance(state: BucketState, event: Event, bucket: str) -> BucketState:
        after = machine.advance(state, event, bucket)
        kept = tuple(each._replace(early=None, early_by="") for each in after.contributions)
        return after._replace(contributions=kept)

    return advance


_PHASED = {
    _K.CLEAR: tuple(Phase),
    _K.BACKWARD: tuple(Phase),
    _K.STEP: (Phase.FRESH, Phase.SPENT, Phase.STALE),
    _K.UNSCALE: (Phase.FRESH,),
    _K.CLIP: (Phase.FRESH, Phase.SPENT),
    _K.SCALER_UPDATE: (Phase.FRESH, Phase.SPENT),
    _K.ASSIGN: (Phase.EMPTY, Phase.SPENT),
}
_MARKS = (
    (_K.BACKWARD, "scaled"),
    (_K.UNSCALE, "scaled"),
    (_K.CLEAR, "lost"),
    (_K.STEP, "awaiting"),
    (_K.STEP, "suspicion"),
    (_K.SCALER_UPDATE, "awaiting"),
)
_STATIC_MARKS = ((_K.BACKWARD, "absent"), (_K.CLEAR, "absent"), (_K.STEP, "stepped"))


def _transitions() -> Iterator[Corruption]:
    machines = [
        (f"{kind.value} in {phase.value}", _wrong_cell(kind, phase))
        for kind, phases in _PHASED.items()
        for phase in phases
    ]
    machines += [(f"{kind.value} leaves {mark}", _unmarked(kind, mark)) for kind, mark in _MARKS]
    machines.append(("scaler_update is never early", _never_early()))
    for name, advance in machines:
        yield Corruption(f"read: {name}", _replaced(advance, *_readers()))
        yield Corruption(f"live: {name}", _replaced(advance, judge))
    for kind, mark in _STATIC_MARKS:
        advance = _unmarked(kind, mark)
        yield Corruption(f"read: {kind.value} leaves {mark}", _replaced(advance, *_readers()))


def _readers() -> list[Any]:
    """Return the modules of the engine that move states."""
    return [each for each in _engine() if vars(each).get("advance") is machine.advance]


@cache
def _engine() -> list[Any]:
    """Return the modules of the checker's engine, of all its rooms."""
    inside = pkgutil.walk_packages(engine.__path__, f"{engine.__name__}.")
    return [importlib.import_module(each.name) for each in inside]


def _replaced(advance: Advance, *modules: Any) -> Callable[[], list[tuple[Any, str, Any]]]:
    return lambda: [(module, "advance", advance) for module in modules]


# Recognisers.

_READERS = (
    ("reading.training", "fill"),
    ("reading.training", "clear"),
    ("reading.training", "step"),
    ("reading.clips", "clip"),
    ("reading.gradients", "touch"),
    ("reading.gradients", "gradient_method"),
    ("reading.scalers", "scaler_method"),
    ("reading.given", "assign_gradient"),
    ("reading.assignments", "_update_by_hand"),
    ("reading.given", "delete"),
    ("reading.expressions", "_use_leaf"),
    ("reading.unseen", "forward"),
    ("judging.windows", "_loses_its_tail"),
    ("judging.windows", "_is_summed"),
    ("judging.windows", "synchronises_each"),
    ("flow.filled", "is_filled"),
)
_HEARERS = (
    ("backwards", "Backwards", "begins"),
    ("clears", "Clears", "ends"),
    ("steps", "Steps", "begins"),
    ("steps", "Steps", "_take_again"),
    ("recorder", "Recorder", "clips"),
    ("recorder", "Recorder", "forwarded"),
    ("scaling", "Scaling", "scales"),
    ("scaling", "Scaling", "unscaled"),
    ("scaling", "Scaling", "updates"),
    ("scaling", "Scaling", "around"),
    ("leaves", "Leaves", "was_updated"),
    ("leaves", "Leaves", "discover"),
    ("confirm", "Looks", "is_zero"),
    ("replicas", "Replicas", "before_backward"),
)


def _blind(module: str, name: str) -> Callable[[], list[tuple[Any, str, Any]]]:
    """Replace a function of the engine, wherever it was imported, by one that sees nothing."""

    def put_on() -> list[tuple[Any, Any, Any]]:
        found: list[tuple[Any, Any, Any]] = []
        original = getattr(importlib.import_module(f"{engine.__name__}.{module}"), name)
        for place in _engine():
            for held, value in vars(place).items():
                if value is original:
                    found.append((place, held, _sees_nothing))
                elif isinstance(value, dict):
                    found += [(value, k, _sees_nothing) for k, v in value.items() if v is original]
        return found

    return put_on


def _sees_nothing(*_: Any, **__: Any) -> Any:
    return NOTHING if _ and type(_[0]).__name__ == "Frame" else None


def _deaf(module: str, kind: str, name: str) -> Callable[[], list[tuple[Any, str, Any]]]:
    def put_on() -> list[tuple[Any, str, Any]]:
        place = getattr(importlib.import_module(f"zerograd.runtime.{module}"), kind)
        answer = {"around": "", "is_zero": False}.get(name)
        return [(place, name, lambda *_, **__: answer)]

    return put_on


def corruptions() -> list[Corruption]:
    """Return all of them, in a fixed order."""
    found = list(_transitions())
    found += [Corruption(f"read: no {name.strip('_')}", _blind(m, name)) for m, name in _READERS]
    found += [
        Corruption(f"live: no {kind}.{name}", _deaf(module, kind, name))
        for module, kind, name in _HEARERS
    ]
    return found
