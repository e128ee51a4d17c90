"""Writes the events of one process: cheap to call, bounded, readable after a kill.

The training loop only appends to a list. A thread of its own turns what has
gathered into lines every 100 ms; a process that is killed loses no more than that.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zerograd.errors import TraceError
from zerograd.lifecycle.events import Event
from zerograd.lifecycle.findings import Finding
from zerograd.trace.format import KEPT_AT_FIRST, Header, is_kept, kept_from, site_to_json
from zerograd.trace.lines import dumps, event_line, rounded

FLUSHED_EVERY = 0.1  # seconds
AROUND_A_FINDING = 3  # iterations kept before and after
MOST_SITES = 4_096  # a program that writes code as it runs must not fill the disk
MOST_FINDINGS = 1_000
MOST_EVENTS = 4_096  # of one iteration; the rest is counted

Entry = tuple[float, Event, "Mapping[str, Any] | None"]  # time.perf_counter() says when


class TraceWriter:
    """One section of a trace file.

    `write` may be called from any thread. After `os.fork` the copy in the child
    must not be used: whoever forks gives the child a writer of its own.

    Args:
        kept_at_first: how many iterations are written whole before any is left out.
        ends: called with the reason if the file can no longer be written, on a full disk say.
    """

    def __init__(
        self,
        path: Path | str,
        header: Header,
        *,
        kept_at_first: int = KEPT_AT_FIRST,
        ends: Callable[[str], object] = lambda reason: None,
    ) -> None:
        self.path = Path(path)
        try:
            self._file: io.FileIO | None = io.FileIO(os.fspath(self.path), "w")
        except OSError as error:
            raise TraceError(f"{path}: the trace cannot be written ({error.strerror}).") from error
        self._kept_at_first = kept_at_first
        self.gather: Callable[[], None] | None = None  # brings what was not told at once
        self._zero = time.perf_counter() - (time.time() - header.started)
        self._ends = ends
        # A signal handler may close it while its own thread is in here.
        self._lock = threading.RLock()  # guards the lists, held for moments only
        self._out = threading.RLock()  # guards the file
        self._iteration = -1
        self._current: list[Entry] = []
        self._overflow: Counter[str] = Counter()
        self._recent: deque[tuple[int, list[Entry]]] = deque(maxlen=AROUND_A_FINDING)
        self._keep_until = -1
        self._ready: list[Any] = []  # iterations, folds and lines, in the order of the file
        self._fold = _Fold()
        self._sites: dict[Event, int] = {}
        self._numbers: dict[int, tuple[int, Event]] = {}  # the same by identity, the event held
        self._totals: Counter[str] = Counter()
        self._iterations = 0
        self._findings = 0
        self._stop = threading.Event()
        self._emit([dumps(header.to_json())])
        self._thread = threading.Thread(target=self._flush_often, name="zerograd-trace")
        self._thread.daemon = True
        self._thread.start()

    def write(
        self, event: Event, *, iteration: int, extra: Mapping[str, Any] | None = None
    ) -> None:
        """Take note of one event. Costs a list append; nothing is written here."""
        entry = (time.perf_counter(), event, extra)
        with self._lock:
            if iteration != self._iteration:
                self._turn(iteration)
            if len(self._current) < MOST_EVENTS:
                self._current.append(entry)
            else:
                self._overflow[event.kind.value] += 1

    def waits_for(self, iteration: int) -> int:
        """Return for how many iterations from this one on nothing need be told until they end."""
        return self.wants_numbers_in(iteration).start - iteration

    def wants_numbers_in(self, iteration: int) -> range:
        """Return iterations from this one on that are written whole, all up to the range's end."""
        if iteration <= self._keep_until:
            return range(iteration, self._keep_until + 1)
        return kept_from(iteration, self._kept_at_first)

    def count_rounds(self, events: Mapping[str, int], *, first: int, last: int) -> None:
        """Take note of iterations that held so many events each, and are only counted."""
        with self._lock:
            self._turn(first)
            for older, held in self._recent:
                self._fold.add(older, held)
            self._recent.clear()
            self._fold.add_rounds(first, last, events)
            self._iterations += last - first
            self._iteration = last

    def write_round(self, entries: list[Entry], *, iteration: int) -> None:
        """Take note of many events of one iteration, each with the clock's time and its extra."""
        with self._lock:
            if iteration != self._iteration:
                self._turn(iteration)
            fits = max(MOST_EVENTS - len(self._current), 0)
            self._current.extend(entries[:fits])
            for _, event, _ in entries[fits:]:
                self._overflow[event.kind.value] += 1

    def keeps(self, iteration: int) -> bool:
        """Will this iteration be written whole?"""
        return self._is_kept(iteration)

    def measured(self, event: Event, *, iteration: int, extra: Mapping[str, float]) -> None:
        """Write a number that came to be known after its event was taken down."""
        with self._lock:
            if self._is_kept(iteration):
                self._ready.append(_Late(iteration, event, extra))

    def finding(self, finding: Finding, *, iteration: int | None = None) -> None:
        """Write a finding, and keep the iterations around it."""
        shape = {"type": "finding", "iteration": iteration, **finding.to_json()}
        with self._lock:
            self._findings += 1
            if self._findings > MOST_FINDINGS:
                return
            now = self._iteration if iteration is None else max(iteration, self._iteration)
            self._close_fold()
            self._ready.extend(self._recent)
            self._recent.clear()
            self._keep_until = max(self._keep_until, now + AROUND_A_FINDING)
            # What led to the finding stands before it.
            self._ready.append((self._iteration, self._current))
            self._current = []
            self._ready.append(shape)

    def update(self, finding: Finding) -> None:
        """Write a finding again, with what is known of it at the end; readers keep the last."""
        with self._lock:
            self._ready.append({"type": "finding", "iteration": None, **finding.to_json()})

    def note(self, text: str) -> None:
        """Write a remark of the tool: something it does not check, or cannot."""
        with self._lock:
            self._ready.append({"type": "note", "text": text})

    def flush(self) -> None:
        """Write down what has gathered, all but the iteration that is under way."""
        if self.gather is not None:
            self.gather()
        with self._out:
            with self._lock:
                ready, self._ready = self._ready, []
                if self._current and self._is_kept(self._iteration):
                    ready.append((self._iteration, self._current))
                    self._current = []
            if ready:
                self._emit(self._lines(ready))

    def close(self, *, exit_code: int | None = None) -> None:
        """Write what is left and the end line. A second call does nothing."""
        if self._file is None:
            return
        self._stop.set()
        if self.gather is not None:
            self.gather()
            self.gather = None
        with self._lock:
            self._turn(self._iteration + 1)
            self._iterations -= 1  # the one just opened holds nothing
            for number, entries in self._recent:
                self._fold.add(number, entries)
            self._recent.clear()
            self._close_fold()
        self.flush()
        with self._out:
            end = {
                "type": "end",
                "t": round(time.perf_counter() - self._zero, 6),
                "iterations": self._iterations,
                "events": dict(self._totals),
                "exit": exit_code,
            }
            self._emit([dumps(end)])
            if self._file is not None:
                self._file.close()
                self._file = None
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=1.0)

    def _is_kept(self, iteration: int) -> bool:
        return iteration <= self._keep_until or is_kept(iteration, self._kept_at_first)

    def _turn(self, iteration: int) -> None:
        """Close the iteration under way: into the file, or among the recent ones."""
        number, entries = self._iteration, self._current
        self._iteration, self._current = iteration, []
        self._iterations += 1
        if self._overflow:
            self._fold.add_counts(number, self._overflow)
            self._overflow = Counter()
        if not entries:
            return
        if self._is_kept(number):
            for older, held in self._recent:
                self._fold.add(older, held)
            self._recent.clear()
            self._close_fold()
            self._ready.append((number, entries))
        else:
            if len(self._recent) == AROUND_A_FINDING:
                self._fold.add(*self._recent.popleft())
            self._recent.append((number, entries))

    def _close_fold(self) -> None:
        if self._fold.iterations:
            self._ready.append(self._fold)
            self._fold = _Fold()

    def _lines(self, ready: Sequence[Any]) -> list[str]:
        lines: list[str] = []
        for item in ready:
            if isinstance(item, dict):
                lines.append(dumps(item))
            elif isinstance(item, _Late):
                number = self._sites.get(_without_backward(item.event))
                if number is not None:
                    lines.append(dumps(item.to_json(number)))
            elif isinstance(item, _Fold):
                self._totals.update(item.events)
                lines.append(dumps(item.to_json()))
            else:
                iteration, entries = item
                for stamp, event, extra in entries:
                    self._totals[event.kind._value_] += 1
                    known = self._numbers.get(id(event)) or self._number(event, lines)
                    if known is None:
                        counts = {event.kind.value: 1}
                        lines.append(dumps(_folded(iteration, counts)))
                    else:
                        at = stamp - self._zero
                        lines.append(event_line(iteration, at, known[0], event.backward, extra))
        return lines

    def _number(self, event: Event, lines: list[str]) -> tuple[int, Event] | None:
        """Return the number of an event's site, written down first if it is new; None: too many."""
        unnamed = _without_backward(event)
        number = self._sites.get(unnamed)
        if number is None:
            if len(self._sites) >= MOST_SITES:
                return None
            number = self._sites[unnamed] = len(self._sites)
            lines.append(dumps(site_to_json(number, unnamed)))
        if len(self._numbers) < MOST_SITES:
            self._numbers[id(event)] = number, event
        return number, event

    def _emit(self, lines: Sequence[str]) -> None:
        if self._file is None:
            return
        text = "".join(f"{line}\n" for line in lines)
        try:
            # Straight to the system, unbuffered: what is written survives a kill.
            self._file.write(text.encode("ascii"))
        except OSError as error:
            # A full disk must not stop training; the file stays readable up to here.
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
            self._ends(error.strerror or str(error))

    def _flush_often(self) -> None:
        while not self._stop.wait(FLUSHED_EVERY):
            self.flush()


class _Fold:
    """A run of iterations that are counted, not written."""

    def __init__(self) -> None:
        self.first = self.last = self.iterations = 0
        self.events: dict[str, int] = {}

    def add(self, iteration: int, entries: Sequence[Entry]) -> None:
        # Called for most iterations of a long run: no function is called in here.
        if not self.iterations:
            self.first = iteration
        if iteration > self.last:
            self.last = iteration
        self.iterations += 1
        events = self.events
        for _, event, _ in entries:
            kind = event.kind._value_
            if kind in events:
                events[kind] += 1
            else:
                events[kind] = 1

    def add_rounds(self, first: int, last: int, counts: Mapping[str, int]) -> None:
        self.add(first, ())
        self.last = max(self.last, last)
        self.iterations += last - first
        for kind, count in counts.items():
            self.events[kind] = self.events.get(kind, 0) + count * (last - first + 1)

    def add_counts(self, iteration: int, counts: Mapping[str, int]) -> None:
        self.add(iteration, ())
        for kind, count in counts.items():
            self.events[kind] = self.events.get(kind, 0) + count

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "folded",
            "first": self.first,
            "last": self.last,
            "iterations": self.iterations,
            "events": dict(self.events),
        }


@dataclass(frozen=True, slots=True)
class _Late:
    """A number that belongs to an event further up."""

    iteration: int
    event: Event
    extra: Mapping[str, Any]

    def to_json(self, site: int) -> dict[str, Any]:
        return {
            "type": "measured",
            "iteration": self.iteration,
            "site": site,
            "extra": rounded(self.extra),
        }


def _folded(iteration: int, counts: Mapping[str, int]) -> dict[str, Any]:
    return {"type": "folded", "first": iteration, "last": iteration, "events": dict(counts)}


def _without_backward(event: Event) -> Event:
    return replace(event, backward="") if event.backward else event
