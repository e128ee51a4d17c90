"""A recorded run as a Chrome trace: opens in Perfetto, beside the one of torch.profiler.

Times count from the same origin as the profiler's own files, and processes keep
their pids, so the two can be laid side by side.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.report.timeline import Content, Lane, ProcessTimeline

# torch.profiler counts its microseconds from the last multiple of a quarter of a year.
_QUARTER = 7_889_238
_FIRST_TRACK = 1_000_000  # above any thread id, so that our lanes do not mix with its threads


@dataclass(frozen=True, slots=True)
class PerfettoProcess:
    """One process, and when and as whom it ran."""

    timeline: ProcessTimeline
    pid: int
    started: float
    rank: int | None
    findings: Sequence[Finding] = ()


def write_perfetto(processes: Sequence[PerfettoProcess], out: TextIO) -> None:
    """Write the events of all processes in the trace event format."""
    origin = int(min((each.started for each in processes), default=0.0)) // _QUARTER * _QUARTER
    events: list[dict[str, Any]] = []
    for process in processes:
        events += _process(process, origin)
    shape = {
        "schemaVersion": 1,
        "baseTimeNanoseconds": origin * 1_000_000_000,
        "displayTimeUnit": "ms",
        "traceEvents": events,
    }
    json.dump(shape, out, allow_nan=False)
    out.write("\n")


def _process(process: PerfettoProcess, origin: int) -> list[dict[str, Any]]:
    start = (process.started - origin) * 1e6
    timeline, pid = process.timeline, process.pid
    times = [start + moment.time * 1e6 for moment in timeline.moments]
    events: list[dict[str, Any]] = []
    for number, lane in enumerate(timeline.lanes):
        track = _FIRST_TRACK + 2 * number
        events += [
            _named(pid, track, f"zerograd {lane.owner}"),
            _named(pid, track + 1, f"zerograd {lane.owner}: held"),
        ]
        events += _marks(timeline, lane, times, pid, track)
        events += _contents(lane, times, pid, track + 1)
    for name, points in timeline.curves.items():
        events += [
            {"ph": "C", "pid": pid, "name": name, "ts": times[index], "args": {name: value}}
            for index, value in points
            if value == value and abs(value) != float("inf")
        ]
    events += _findings(process, times)
    return events


def _named(pid: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": track, "name": "thread_name", "args": {"name": name}}


def _marks(
    timeline: ProcessTimeline, lane: Lane, times: Sequence[float], pid: int, track: int
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for mark in lane.marks:
        moment = timeline.moments[mark.index]
        spot = moment.event.spot
        events.append(
            {
                "ph": "i",
                "s": "t",
                "pid": pid,
                "tid": track,
                "ts": round(times[mark.index], 3),
                "cat": "zerograd",
                "name": moment.event.kind.value,
                "args": {
                    "iteration": moment.iteration,
                    "where": f"{spot.path}:{spot.line}",
                    "code": moment.event.text,
                    "holds": mark.content.value,
                },
            }
        )
    for window in lane.windows:
        first, last = lane.marks[window.first].index, lane.marks[window.last].index
        kind = timeline.moments[last].event.kind
        skipped = " (skipped)" if kind is EventKind.STEP_SKIPPED else ""
        plural = "" if window.backwards == 1 else "s"
        events.append(
            {
                "ph": "X",
                "pid": pid,
                "tid": track,
                "ts": round(times[first], 3),
                "dur": round(max(times[last] - times[first], 0.001), 3),
                "cat": "zerograd",
                "name": f"window of {window.backwards} backward{plural}{skipped}",
                "args": {"iteration": timeline.moments[first].iteration},
            }
        )
    return events


def _contents(lane: Lane, times: Sequence[float], pid: int, track: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    begun, held = 0.0, Content.EMPTY
    for mark in [*lane.marks, None]:
        now = times[mark.index] if mark is not None else (times[-1] if times else 0.0)
        content = mark.content if mark is not None else None
        if content is held:
            continue
        if held is not Content.EMPTY:
            events.append(
                {
                    "ph": "X",
                    "pid": pid,
                    "tid": track,
                    "ts": round(begun, 3),
                    "dur": round(max(now - begun, 0.001), 3),
                    "cat": "zerograd",
                    "name": held.value,
                    "args": {},
                }
            )
        if content is not None:
            begun, held = now, content
    return events


def _findings(process: PerfettoProcess, times: Sequence[float]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    first: dict[int, float] = {}
    for moment, time in zip(process.timeline.moments, times, strict=True):
        first.setdefault(moment.iteration, time)
    for finding in process.findings:
        step = finding.live.step if finding.live is not None else None
        if step not in first:
            continue
        events.append(
            {
                "ph": "i",
                "s": "p",
                "pid": process.pid,
                "tid": _FIRST_TRACK,
                "ts": round(first[step], 3),
                "cat": "zerograd",
                "name": f"{finding.rule.code} {finding.rule.name}",
                "args": {
                    "message": finding.message,
                    "where": str(finding.spot),
                    "advice": finding.advice,
                },
            }
        )
    return events
