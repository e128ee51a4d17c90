"""By which calls the program comes to each spot, and so in which order a turn of its loop does.

Lines tell that within one function only. What is called may stand above its caller, or in a file
of its own: then the calls on the way tell, from the outermost frame on.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import NamedTuple

from zerograd.lifecycle.events import Event, Spot
from zerograd.lifecycle.findings import Finding, in_rounds
from zerograd.runtime.call_site import kind_of_is_machinery
from zerograd.runtime.callers import loops_among, nodes_around, nodes_at
from zerograd.runtime.cells import cell_of

MOST_SPOTS = 256
MOST_WAYS = 8  # to one spot
MOST_FRAMES = 64


class Call(NamedTuple):
    """Where a function is on the way: at which line, and at which instruction.

    Instructions stand in the order in which they are run, where several calls share a line, and
    where a `with` ends at the line that it begins with.
    """

    code: CodeType
    line: int
    at: int


_Calls = tuple[Call, ...]  # the outermost first
_Key = tuple[tuple[int, int], ...]  # by the identity of each code: to hash one takes its length


def _key_of(calls: _Calls) -> _Key:
    return tuple((id(each.code), each.at) for each in calls)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a spot."""

    calls: _Calls
    number: int  # the first that was gone has the lowest
    reach: frozenset[str] = frozenset()  # the buckets of what happens there

    def is_after(self, other: Way) -> bool:
        """Does a turn of the loop come here later than there?"""
        parting = _parting(self, other)
        if parting is None:  # one call, or one that holds the other: as they came
            return self.number > other.number
        mine, its = parting
        return mine.at > its.at

    def is_of_one_loop(self, other: Way) -> bool:
        """Is there a loop that goes both ways in each of its turns?

        A training that is called twice goes through all of its lines twice, and it is no turn
        that leads from the one call to the other.
        """
        parting = _parting(self, other)
        if parting is not None:
            mine, its = parting
            loops = loops_among(nodes_around(mine.code, mine.line))
            if any(each.lineno <= its.line <= (each.end_lineno or 0) for each in loops):
                return True
        shared = _shared(self, other)
        return any(loops_among(nodes_around(each.code, each.line)) for each in shared)


def _shared(way: Way, other: Way) -> Iterator[Call]:
    """Yield the calls that both ways begin with."""
    for mine, its in zip(way.calls, other.calls, strict=False):
        if mine.code is not its.code or mine.at != its.at:
            return
        yield mine


def _parting(way: Way, other: Way) -> tuple[Call, Call] | None:
    """Return the calls of one function in which two ways part."""
    for mine, its in zip(way.calls, other.calls, strict=False):
        if mine.code is not its.code:
            return None
        if mine.at != its.at:
            return mine, its
    return None


class Ways:
    """Remembers the ways that were gone, and tells by them where a loop has come round."""

    def __init__(self) -> None:
        self._known: dict[Spot, dict[_Key, Way]] = {}
        self._met = 0

    def note(self, event: Event) -> None:
        """Take note of the way to an event, met for the first time, that happens now."""
        calls = _calls_to(event.spot)
        if not calls:
            return
        if len(self._known) >= MOST_SPOTS:
            self._known.clear()
        ways = self._known.setdefault(event.spot, {})
        key = _key_of(calls)
        known = ways.get(key)
        if known is None:
            if len(ways) >= MOST_WAYS:
                del ways[next(iter(ways))]
            known = Way(calls, self._met)
            self._met += 1
        ways[key] = replace(known, reach=known.reach.union(event.reach))

    def told(self, finding: Finding, event: Event | None, buckets: Collection[str]) -> Finding:
        """Say "next iteration" in a trail where the program has come round, and nowhere else.

        Args:
            event: what goes on now.
            buckets: those that the finding is about.
        """
        if finding.rule.code == "ZG201":
            buckets = ()  # another optimizer's step is a station of it, too
        again: list[bool] = []
        later: Way | None = None  # to the station behind
        for station in reversed(finding.trail):
            ways = self._ways_to(station.spot, event if later is None else None, buckets)
            if later is not None:
                behind = later
                ways = [each for each in ways if behind.is_of_one_loop(each)] or ways
                earlier = [each for each in ways if behind.is_after(each)]
                again.append(not earlier)
                ways = earlier or ways
            if not ways:
                return finding  # the way to it is not known: lines are all there is
            later = _last(ways)
        return in_rounds(finding, (False, *reversed(again)))

    def _ways_to(self, spot: Spot, event: Event | None, buckets: Collection[str]) -> list[Way]:
        known = self._known.get(spot, {})
        if event is not None and event.spot == spot:
            now = known.get(_key_of(_calls_to(spot)))
            if now is not None:
                return [now]
        ways = list(known.values())
        return [each for each in ways if not each.reach.isdisjoint(buckets)] or ways


def _last(ways: list[Way]) -> Way:
    """Return the one that a turn of the loop goes last."""
    last = ways[0]
    for each in ways[1:]:
        if each.is_after(last):
            last = each
    return last


def _calls_to(spot: Spot) -> _Calls:
    """Return the calls that lead to a spot now, none if it is not where the program is.

    What is done by hand is noticed a little later: in the same function for the most part, or in
    one that has called that.
    """
    calls: list[Call] = []
    start = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(calls) < MOST_FRAMES:
        code = frame.f_code
        if not kind_of_is_machinery(code.co_filename):
            here = None if start else _call_in(frame, spot)
            calls.append(here or Call(code, frame.f_lineno, frame.f_lasti))
            start = start or (len(calls) if here is not None else 0)
        frame = frame.f_back
    return tuple(reversed(calls[start - 1 :] if start else _calls_by_name(calls, spot)))


def _calls_by_name(calls: list[Call], spot: Spot) -> list[Call]:
    """Return the calls that lead to where the function at a spot was called last, by its name."""
    name = next((getattr(each, "name", "") for each in nodes_at(spot)), "")
    for n, call in enumerate(calls if name else ()):
        lines = [
            each.lineno
            for around in nodes_around(call.code, call.line)[:1]
            for each in ast.walk(around)
            if isinstance(each, ast.Call) and _called(each) == name
        ]
        if lines:
            line = max((each for each in lines if each <= call.line), default=max(lines))
            return [Call(call.code, line, _last_at(call.code, line) or 0), *calls[n + 1 :]]
    return []


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def _call_in(frame: FrameType, spot: Spot) -> Call | None:
    """Return where a spot is in the function of a frame, None if it is elsewhere."""
    code, line = frame.f_code, spot.line
    cell = cell_of(code) if spot.cell is not None else None
    if cell is not None:
        if (cell.notebook, cell.number) != (spot.path, spot.cell):
            return None
        line -= cell.above
    elif code.co_filename != spot.path:
        return None
    at = frame.f_lasti if line == frame.f_lineno else _last_at(code, line)
    return Call(code, line, at) if at is not None else None


def _last_at(code: CodeType, line: int) -> int | None:
    """Return the last instruction of a line that is none of a function made there."""
    return max((start for start, _, each in code.co_lines() if each == line), default=None)
