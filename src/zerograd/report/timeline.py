"""A recorded run as lanes: what each optimizer's buckets held after every event.

The contents are not stored in a trace. They follow from its events by the same
machine that the rules use, so a picture can never disagree with a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, Protocol

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.machine import advance
from zerograd.lifecycle.state import INITIAL, BucketState, Phase

CURVES = ("loss", "grad_norm")  # numbers that a trace may carry with its events
_NOT_FINITE = ("nan", "inf", "-inf")  # as a trace spells what JSON has no number for
_LOSS = re.compile(r"([\w.]+)\.backward\(")  # as the user calls it
MOST_CURVES = 12  # of one process; those with the most points
_STEPS = (EventKind.STEP, EventKind.STEP_SKIPPED)
_FILLS = (EventKind.BACKWARD, EventKind.ASSIGN)


class CurveKey(NamedTuple):
    """What tells one curve from another."""

    name: str
    owner: str
    spot: Spot
    text: str


class Moment(Protocol):
    """An event as a trace holds it."""

    @property
    def event(self) -> Event: ...
    @property
    def iteration(self) -> int: ...
    @property
    def time(self) -> float: ...
    @property
    def extra(self) -> Mapping[str, Any]: ...


class Gap(Protocol):
    """Iterations that a trace counted without writing them."""

    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def iterations(self) -> int: ...
    @property
    def events(self) -> Mapping[str, int]: ...


class Content(Enum):
    """What a lane's bucket holds, worst last."""

    EMPTY = "empty"
    UNKNOWN = "unknown"  # something unseen may have touched it
    FRESH = "fresh"  # no step has used it
    SPENT = "spent"  # a step has used it
    LOST = "lost"  # a clear will throw it away unused
    FOREIGN = "foreign"  # left behind by another optimizer's loss
    STALE = "stale"  # new gradients on top of used ones


_BADNESS = {content: rank for rank, content in enumerate(Content)}


@dataclass(slots=True)
class Mark:
    """An event on a lane, and what the bucket holds from then on."""

    index: int  # of the event in its process
    content: Content
    level: int  # how many backwards it holds
    is_own: bool = True  # False: an event of another lane that changed what this one's bucket is


@dataclass(frozen=True, slots=True)
class Bracket:
    """A window: from its first backward to its step, as positions on the lane."""

    first: int
    last: int
    backwards: int


@dataclass(slots=True)
class Lane:
    """One owner's history."""

    owner: str
    buckets: tuple[str, ...]
    marks: list[Mark] = field(default_factory=list)
    windows: list[Bracket] = field(default_factory=list)
    is_owned: bool = True  # False: a bucket of no optimizer


@dataclass(slots=True)
class ProcessTimeline:
    """All that one process did."""

    name: str
    moments: list[Moment]
    gaps: list[tuple[int, Gap]]  # before which moment, and the gap
    lanes: list[Lane]
    curves: dict[str, list[tuple[int, float]]]  # name -> (which moment, value)


def build_timeline(name: str, happened: Iterable[Moment | Gap]) -> ProcessTimeline:
    """Replay what happened in one process."""
    moments: list[Moment] = []
    gaps: list[tuple[int, Gap]] = []
    for item in happened:
        if hasattr(item, "event"):
            moments.append(item)  # type: ignore[arg-type]
        else:
            gaps.append((len(moments), item))
    holdings = _holdings([moment.event for moment in moments])
    replay = _Replay(holdings)
    for index, moment in enumerate(moments):
        replay.feed(index, moment.event)
    lanes = [lane for lane in replay.lanes.values() if lane.marks]
    return ProcessTimeline(name, moments, gaps, lanes, _curves(moments))


def _holdings(events: Sequence[Event]) -> dict[str, tuple[str, ...]]:
    """Return which buckets each owner holds: what it steps, else what its events reach."""
    stepped: dict[str, dict[str, None]] = {}
    named: dict[str, dict[str, None]] = {}
    for event in events:
        if event.owner:
            place = stepped if event.kind in _STEPS else named
            place.setdefault(event.owner, {}).update(dict.fromkeys(event.reach))
    holdings = {owner: tuple(buckets) for owner, buckets in stepped.items()}
    held = {bucket for buckets in holdings.values() for bucket in buckets}
    for owner, buckets in named.items():
        free = tuple(bucket for bucket in buckets if bucket not in held)
        if owner not in holdings and free:
            holdings[owner] = free
    return holdings


class _Replay:
    """Moves every bucket through the machine and writes the lanes."""

    def __init__(self, holdings: Mapping[str, tuple[str, ...]]) -> None:
        self._holdings = dict(holdings)
        self._states: dict[str, BucketState] = {
            bucket: INITIAL for buckets in holdings.values() for bucket in buckets
        }
        self.lanes = {owner: Lane(owner, buckets) for owner, buckets in holdings.items()}
        self._fills: dict[str, int] = dict.fromkeys(self._states, 0)  # since the last clear
        self._open: dict[str, tuple[int, int]] = {}  # owner -> first mark of its window, backwards

    def feed(self, index: int, event: Event) -> None:
        event = self._complete(event)
        for bucket in event.reach:
            if bucket not in self._states:
                self._adopt(bucket)
        before = dict(self._states)
        for bucket, state in before.items():
            self._states[bucket] = advance(state, event, bucket)
        reached = set(event.reach)
        for bucket in reached:
            if event.kind is EventKind.BACKWARD:
                self._fills[bucket] += 1
            elif event.kind in (EventKind.CLEAR, EventKind.ASSIGN):
                self._fills[bucket] = int(event.kind is EventKind.ASSIGN)
        for owner, lane in self.lanes.items():
            if owner == event.owner or owner in event.fills or reached & set(lane.buckets):
                self._mark(lane, index, event, before)
            elif lane.marks and self._held(lane) is not lane.marks[-1].content:
                level = lane.marks[-1].level
                lane.marks.append(Mark(index, self._held(lane), level, is_own=False))

    def _complete(self, event: Event) -> Event:
        """Name the owners that a backward fills: an early event may not know their last names."""
        if event.kind in _FILLS:
            reached = set(event.reach)
            fills = (owner for owner, held in self._holdings.items() if reached & set(held))
            return replace(event, fills=frozenset(fills) or event.fills)
        return event

    def _adopt(self, bucket: str) -> None:
        """A bucket that no optimizer holds gets a lane of its own."""
        self._states[bucket] = INITIAL
        self._fills[bucket] = 0
        self._holdings[bucket] = (bucket,)
        self.lanes[bucket] = Lane(bucket, (bucket,), is_owned=False)

    def _mark(
        self, lane: Lane, index: int, event: Event, before: Mapping[str, BucketState]
    ) -> None:
        owner = lane.owner
        if event.kind is EventKind.CLEAR and not event.inside:
            dropped = (before.get(bucket, INITIAL) for bucket in lane.buckets)
            if any(_is_unused(state) for state in dropped):
                _relabel(lane.marks, Content.FRESH, Content.LOST)
        if event.kind in _STEPS and event.owner == owner:
            held = [before.get(bucket, INITIAL) for bucket in lane.buckets]
            if all(len(state.contributions) < 2 for state in held):
                # The step shares the loss that another optimizer has just stepped on.
                _relabel(lane.marks, Content.FOREIGN, Content.FRESH)
        level = max(self._fills[bucket] for bucket in lane.buckets)
        lane.marks.append(Mark(index, self._held(lane), level))
        self._bracket(lane, event)

    def _held(self, lane: Lane) -> Content:
        """Return the worst that any of the lane's buckets holds."""
        contents = (_content(self._states[bucket], lane.owner) for bucket in lane.buckets)
        return max(contents, key=_BADNESS.__getitem__)

    def _bracket(self, lane: Lane, event: Event) -> None:
        here = len(lane.marks) - 1
        if event.kind in _FILLS and lane.owner in event.fills:
            first, count = self._open.get(lane.owner, (here, 0))
            self._open[lane.owner] = (first, count + 1)
        elif event.kind in _STEPS and event.owner == lane.owner and lane.owner in self._open:
            first, count = self._open.pop(lane.owner)
            lane.windows.append(Bracket(first, here, count))


def _is_unused(state: BucketState) -> bool:
    return any(not each.used_by for each in state.contributions) and not state.unknown


def _relabel(marks: list[Mark], old: Content, new: Content) -> None:
    """Rename the contents of the last marks in a row that hold `old`."""
    for mark in reversed(marks):
        if mark.content is not old:
            return
        mark.content = new


def _content(state: BucketState, owner: str) -> Content:
    if state.unknown:
        return Content.UNKNOWN
    phase = state.phase(owner)
    if phase is Phase.STALE:
        return Content.STALE
    if phase is Phase.FRESH and any(
        each.used_by and owner not in each.used_by for each in state.contributions
    ):
        return Content.FOREIGN
    return Content(phase.value)


def _curves(moments: Sequence[Moment]) -> dict[str, list[tuple[int, float]]]:
    """Return what was measured, a curve for each loss and for each optimizer's norm."""
    curves: dict[CurveKey, list[tuple[int, float]]] = {}
    for index, moment in enumerate(moments):
        for name in CURVES:
            value = moment.extra.get(name)
            if isinstance(value, (int, float)) or value in _NOT_FINITE:
                event = moment.event
                key = CurveKey(name, event.owner, event.spot, event.text)
                curves.setdefault(key, []).append((index, float(value)))
    most = sorted(curves, key=lambda key: len(curves[key]), reverse=True)[:MOST_CURVES]
    kept = sorted(most, key=lambda key: CURVES.index(key.name))
    return {_label(key, kept): curves[key] for key in kept}


def _label(key: CurveKey, others: Sequence[CurveKey]) -> str:
    """Return the name of a curve with as much more as tells it from the others."""
    name, owner, spot, text = key
    alike = [each for each in others if each.name == name]
    if len(alike) == 1:
        return name
    if owner and len({each.owner for each in alike}) == len(alike):
        return f"{name} of {owner}"
    if len({each.spot.line for each in alike}) == len(alike):
        variable = _LOSS.match(text)
        known = f"{variable[1]}, " if variable and variable[1] != name else ""
        return f"{name}, {known}line {spot.line}"
    return f"{name} of {owner or 'the optimizer'}, {spot}"
