"""Laps of a ride on their way to a trace: gathered as times, told many at a time.

The training thread only notes when each call came. What has gathered is handed over when
the trace is about to write (ten times a second), and when the ride ends.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from zerograd.runtime.ride import Ride

if TYPE_CHECKING:
    from zerograd.trace.writer import Entry

MOST_STAMPS = 4096  # of a ride, before they are handed over without being asked for
WHOLE_AT_LAST = 4  # rounds that a trace would show around a finding, and the one under way
PATIENCE = 0.2  # seconds; a fork may have taken a lock along that nobody will open


class RoundSink(Protocol):
    """A trace that also takes rounds that were ticked off, after they have ended."""

    gather: Callable[[], None] | None  # called before it writes

    def wants_numbers_in(self, iteration: int) -> range: ...

    def waits_for(self, iteration: int) -> int: ...

    def count_rounds(self, events: Mapping[str, int], *, first: int, last: int) -> None: ...

    def write_round(self, entries: list[Entry], *, iteration: int) -> None: ...


class Laps:
    """Takes the laps of one ride after the other to a trace."""

    @staticmethod
    def of(trace: Any) -> Laps | None:
        """Return those for a trace, None if it takes each event as it comes."""
        return Laps(trace) if hasattr(trace, "write_round") else None

    def __init__(self, trace: RoundSink) -> None:
        self._trace = trace
        self._lock = threading.Lock()  # the trace asks from a thread of its own
        self._ride: Ride | None = None
        self._first = 0  # the number of the round in which the ride began
        self._most = 1  # laps between two questions
        self._kinds: Mapping[str, int] = {}  # the events of one lap
        self._fault: Exception | None = None  # of ours, in the trace's thread

    def begin(self, ride: Ride, first: int) -> None:
        """Gather for a ride that has just begun in the round `first`."""
        legs = ride.ring.legs
        self._ride, self._first = ride, first
        self._most = max(MOST_STAMPS // len(legs), 1)
        self._kinds = Counter(each.event.kind.value for leg in legs for each in leg.symbols)
        self._trace.gather = self._gather
        self.ask()
        ride.count_on()

    def ask(self) -> None:
        """Ask for which of the laps to come the trace wants numbers."""
        going = self._ride
        if going is None:
            return
        if len(going.stamps) >= MOST_STAMPS:
            self.hand_over()
        laps = going.laps
        wanted = self._trace.wants_numbers_in(self._first + laps)
        first = self._first
        going.wanted = range(wanted.start - first, wanted.stop - first, wanted.step)
        # Asked again after them, and soon enough that not too much gathers.
        going.due = min(going.wanted.stop, laps + self._most)

    def _gather(self) -> None:
        try:
            self.hand_over()
        except Exception as error:  # told where our faults are told, when the ride ends
            self._fault = error

    def hand_over(self) -> None:
        """Give the trace the laps that are complete."""
        if self._lock.acquire(blocking=False):  # else the other one is at it
            try:
                if self._ride is not None:
                    self._tell(self._ride, whole_laps=True)
            finally:
                self._lock.release()

    def end(self) -> None:
        """Give the trace the rest of a ride that has ended."""
        has_lock = self._lock.acquire(timeout=PATIENCE)
        try:
            going, self._ride = self._ride, None
            if self._fault is not None:
                raise self._fault
            if going is not None:
                self._tell(going, whole_laps=False)
        finally:
            if has_lock:
                self._lock.release()

    def _tell(self, going: Ride, *, whole_laps: bool) -> None:
        """Write rounds whole that the trace keeps and the last ones, count the others."""
        stamps, size = going.stamps, len(going.ring.legs)
        if not stamps:
            return
        start = going.told + 1  # the first call came before the ride
        stop = start + len(stamps)
        if whole_laps:
            stop -= stop % size
        if stop <= start:
            return
        taken = stamps[: stop - start]
        del stamps[: stop - start]
        going.told += len(taken)
        first, lap, last = self._first, start // size, (stop - 1) // size
        while lap <= last:
            is_whole = lap * size >= start and (lap + 1) * size <= stop
            most = last + 1 - WHOLE_AT_LAST
            until = min(lap + self._trace.waits_for(first + lap), most) if lap < most else lap
            if is_whole and until > lap:
                self._trace.count_rounds(self._kinds, first=first + lap, last=first + until - 1)
                lap = until
            else:
                entries = self._entries(going, taken, lap, start)
                self._trace.write_round(entries, iteration=first + lap)
                lap += 1

    @staticmethod
    def _entries(going: Ride, taken: list[float], lap: int, start: int) -> list[Entry]:
        legs, extras = going.ring.legs, going.extras
        first = lap * len(legs)
        entries: list[Entry] = []
        for n in range(max(first, start), min(first + len(legs), start + len(taken))):
            symbols, at = legs[n - first].symbols, taken[n - start]
            for symbol in symbols:
                entries.append((at, symbol.shown or symbol.event, None))
            if n in extras:
                at, event, _ = entries[-1]
                entries[-1] = at, event, extras.pop(n)
        return entries
