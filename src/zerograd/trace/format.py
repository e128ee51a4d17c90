"""The lines of a trace file: what the writer and every reader agree on.

A file holds one section a process: a header, then sites, events, folds, findings
and notes, then an end. An event names its site by number, because a training
loop passes the same few lines a million times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Edit, Finding, Fix, Live, TrailStep
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness
from zerograd.rules import BY_CODE

VERSION = 1
KEPT_AT_FIRST = 1_000  # iterations written whole before thinning starts
PARTS = ".parts"  # FILE.parts/ holds what other processes of the run wrote


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a section: which process of which run wrote it."""

    tool: str  # the version of zerograd
    started: float  # seconds since 1970, when `t` was 0
    command: tuple[str, ...] = ()
    python: str = ""
    torch: str = ""
    pid: int = 0
    parent: int | None = None  # the pid of the process of this run that started it
    rank: int | None = None
    world: int | None = None
    host: str = ""
    cwd: str = ""  # where the user stood; paths below it are shown without it
    version: int = VERSION

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "header",
            "format": "zerograd-trace",
            "version": self.version,
            "tool": self.tool,
            "started": round(self.started, 6),
            "command": list(self.command),
            "python": self.python,
            "torch": self.torch,
            "pid": self.pid,
            "parent": self.parent,
            "rank": self.rank,
            "world": self.world,
            "host": self.host,
            "cwd": self.cwd,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Header:
        return cls(
            tool=str(line.get("tool", "")),
            started=float(line.get("started", 0.0)),
            command=tuple(str(word) for word in line.get("command", ())),
            python=str(line.get("python", "")),
            torch=str(line.get("torch", "")),
            pid=int(line.get("pid", 0)),
            parent=line.get("parent"),
            rank=line.get("rank"),
            world=line.get("world"),
            host=str(line.get("host", "")),
            cwd=str(line.get("cwd", "")),
            version=int(line.get("version", 0)),
        )


@dataclass(frozen=True, slots=True)
class Happened:
    """One event of a run: the event, its iteration, its time, and what was measured with it."""

    event: Event
    iteration: int
    time: float  # seconds since the header's `started`
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Folded:
    """Iterations that were counted, not written."""

    first: int
    last: int
    iterations: int
    events: Mapping[str, int]


def is_kept(iteration: int, kept_at_first: int = KEPT_AT_FIRST) -> bool:
    """Is this iteration written whole, whatever happens in it?

    All of the first thousand, then every eighth up to 2,000, every sixteenth up
    to 4,000, and so on: each doubling of the run adds the same number.

    >>> [n for n in range(990, 1020) if is_kept(n)][-6:]
    [997, 998, 999, 1000, 1008, 1016]
    >>> sum(is_kept(n) for n in range(1_000_000))
    2245
    """
    return iteration < kept_at_first or iteration % _apart(iteration, kept_at_first) == 0


def kept_from(iteration: int, kept_at_first: int = KEPT_AT_FIRST) -> range:
    """Return iterations from this one on that are kept: all of them up to the end of the range.

    >>> kept_from(990), kept_from(1_001), kept_from(5_001), kept_from(15_999)
    (range(990, 1000), range(1008, 2000, 8), range(5024, 8000, 32), range(16000, 32000, 128))
    """
    if iteration < kept_at_first:
        return range(iteration, kept_at_first)
    apart = _apart(iteration, kept_at_first)
    first, thinner = iteration + -iteration % apart, apart // 4 * kept_at_first
    return range(first, thinner, apart) if first < thinner else kept_from(first, kept_at_first)


def _apart(iteration: int, kept_at_first: int) -> int:
    return 4 << (iteration // kept_at_first).bit_length()


def spot_to_json(spot: Spot) -> dict[str, Any]:
    shape: dict[str, Any] = {"path": spot.path, "line": spot.line, "column": spot.column}
    if spot.end_line:
        shape |= {"end_line": spot.end_line, "end_column": spot.end_column}
    if spot.cell is not None:
        shape["cell"] = spot.cell
    return shape


def spot_from_json(shape: Mapping[str, Any]) -> Spot:
    return Spot(
        path=str(shape.get("path", "")),
        line=int(shape.get("line", 0)),
        column=int(shape.get("column", 1)),
        end_line=int(shape.get("end_line", 0)),
        end_column=int(shape.get("end_column", 0)),
        cell=shape.get("cell"),
    )


# Event fields that are the same each time a site is passed, beside kind, owner and spot.
_FIXED: tuple[tuple[str, Any], ...] = (
    ("text", ""),
    ("scaler", ""),
    ("to_none", True),
    ("inside", False),
    ("leaf", False),
    ("averaged", None),
    ("synchronised", False),
    ("finite", True),
    ("counted", None),
)


def site_to_json(number: int, event: Event) -> dict[str, Any]:
    """Return the line that introduces a site: the event without the name of its backward."""
    shape: dict[str, Any] = {
        "type": "site",
        "site": number,
        "kind": event.kind.value,
        "owner": event.owner,
        "spot": spot_to_json(event.spot),
    }
    if event.buckets:
        shape["buckets"] = list(event.buckets)
    if event.fills:
        shape["fills"] = sorted(event.fills)
    shape |= {name: getattr(event, name) for name, usual in _FIXED if getattr(event, name) != usual}
    return shape


def site_from_json(shape: Mapping[str, Any]) -> Event:
    return Event(
        kind=EventKind(shape["kind"]),
        owner=str(shape.get("owner", "")),
        spot=spot_from_json(shape.get("spot", {})),
        buckets=tuple(str(name) for name in shape.get("buckets", ())),
        fills=frozenset(str(name) for name in shape.get("fills", ())),
        **{name: shape.get(name, usual) for name, usual in _FIXED},
    )


def finding_from_json(shape: Mapping[str, Any]) -> Finding:
    """Return the finding that `Finding.to_json` wrote; a rule not known here keeps its name."""
    place, end = shape.get("location", {}), shape.get("end_location", {})
    row, column = int(place.get("row", 0)), int(place.get("column", 1))
    end_row, end_column = int(end.get("row", row)), int(end.get("column", column))
    ends_where_it_starts = (end_row, end_column) == (row, column)
    spot = Spot(
        path=str(shape.get("filename", "")),
        line=row,
        column=column,
        end_line=0 if ends_where_it_starts else end_row,
        end_column=0 if ends_where_it_starts else end_column,
        cell=shape.get("cell"),
    )
    return Finding(
        rule=_rule(shape),
        spot=spot,
        message=str(shape.get("message", "")),
        advice=str(shape.get("advice", "")),
        owner=str(shape.get("owner", "")),
        trail=tuple(_station(step) for step in shape.get("trail", ())),
        fix=_fix(shape.get("fix")),
        url=shape.get("url"),
        live=_live(shape) if "count" in shape else None,
    )


def _rule(shape: Mapping[str, Any]) -> Rule:
    known = BY_CODE.get(str(shape.get("code")))
    if known is not None:
        return known
    # Written by another version of the tool: shown as it was written.
    severities = [each.value for each in Severity]
    severity = shape.get("severity")
    return Rule(
        code=str(shape.get("code", "ZG000")),
        name=str(shape.get("name", "unknown")),
        summary=str(shape.get("message", "")),
        advice=str(shape.get("advice", "")),
        severity=Severity(severity) if severity in severities else Severity.ERROR,
        seen_by=Witness.RUNTIME,
        kind=RuleKind.SUMMARY,
    )


def _station(shape: Mapping[str, Any]) -> TrailStep:
    place = shape.get("location", {})
    spot = Spot(
        str(shape.get("filename", "")),
        int(place.get("row", 0)),
        int(place.get("column", 1)),
        cell=shape.get("cell"),
    )
    return TrailStep(spot, str(shape.get("text", "")), str(shape.get("code", "")))


def _fix(shape: Mapping[str, Any] | None) -> Fix | None:
    if not shape:
        return None
    edits = (
        Edit(
            edit["location"]["row"],
            edit["location"]["column"],
            edit["end_location"]["row"],
            edit["end_location"]["column"],
            edit["content"],
        )
        for edit in shape.get("edits", ())
    )
    return Fix(str(shape.get("message", "")), tuple(edits))


def _live(shape: Mapping[str, Any]) -> Live:
    return Live(
        step=shape.get("step"),
        ranks=_ranks(shape.get("rank")),
        parameters=tuple(str(name) for name in shape.get("parameters", ())),
        count=int(shape.get("count", 1)),
        share=shape.get("share"),
    )


def _ranks(value: int | Iterable[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)
