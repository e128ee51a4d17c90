"""A recorded run for people at a terminal: the shape of its loop, what was folded, where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from zerograd.lifecycle.events import Event
from zerograd.report.excerpt import visible
from zerograd.report.timeline import Moment, ProcessTimeline

_MOST_SHAPES = 12


def write_timeline(processes: Sequence[ProcessTimeline], out: TextIO) -> None:
    """Write, for each process, the iterations that look alike as one line."""
    for process in processes:
        kept = {moment.iteration for moment in process.moments}
        folded = sum(gap.iterations for _, gap in process.gaps)
        words = _count(len(kept) + folded, "iteration")
        if folded:
            words += f", {folded:,} of them folded into counts"
        out.write(f"{visible(process.name)}: {words}\n")
        shapes = list(_shapes(process.moments))
        for first, last, events in shapes[:_MOST_SHAPES]:
            span = f"{first}" if first == last else f"{first}-{last}"
            out.write(f"  {span:>12}  {' → '.join(_words(event) for event in events)}\n")
        if len(shapes) > _MOST_SHAPES:
            more = _count(len(shapes) - _MOST_SHAPES, "more change")
            out.write(f"  {'':>12}  and {more} of shape\n")
        for lane in process.lanes:
            sizes = sorted({window.backwards for window in lane.windows})
            owned = "" if lane.is_owned else " (of no optimizer)"
            steps = len(lane.windows)
            shown = ", ".join(map(str, sizes[:6])) + (", …" if len(sizes) > 6 else "")
            windows = _count(steps, "window")
            text = f"{windows} of {shown} backward{'' if sizes == [1] else 's'}"
            out.write(f"  {visible(lane.owner)}{owned}: {text if steps else 'never stepped'}\n")
        out.write("\n")


def _shapes(moments: Sequence[Moment]) -> Iterator[tuple[int, int, list[Event]]]:
    """Yield runs of iterations that pass the same lines in the same order."""
    current: tuple[int, int, list[Event]] | None = None
    for iteration, events in _by_iteration(moments):
        shape = [(event.kind, event.owner, event.spot) for event in events]
        if current is not None:
            first, _, before = current
            if [(event.kind, event.owner, event.spot) for event in before] == shape:
                current = (first, iteration, before)
                continue
            yield current
        current = (iteration, iteration, events)
    if current is not None:
        yield current


def _by_iteration(moments: Sequence[Moment]) -> Iterator[tuple[int, list[Event]]]:
    events: list[Event] = []
    iteration = None
    for moment in moments:
        if moment.iteration != iteration and events:
            yield iteration or 0, events
            events = []
        iteration = moment.iteration
        events.append(moment.event)
    if events:
        yield iteration or 0, events


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _words(event: Event) -> str:
    owner = f"{event.owner} " if event.owner else ""
    place = f"{event.spot.path}:{event.spot.line}"
    return visible(f"{owner}{event.kind.value.replace('_', ' ')} ({place})")
