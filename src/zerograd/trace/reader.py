"""Reads trace files, also those of runs that were killed while writing.

A torn last line is what a kill leaves and is passed over; a file that is no
trace, or is of a later version, is refused with a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zerograd.errors import TraceError
from zerograd.lifecycle.events import Event
from zerograd.lifecycle.findings import Finding
from zerograd.trace.format import (
    PARTS,
    VERSION,
    Folded,
    Happened,
    Header,
    finding_from_json,
    site_from_json,
)
from zerograd.trace.lines import dumps

_NEXT = "  Record a run with: zerograd run --trace FILE SCRIPT"


@dataclass(slots=True)
class Section:
    """What one process wrote."""

    header: Header
    happened: list[Happened | Folded] = field(default_factory=list)  # in the order of the file
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    end: Mapping[str, Any] | None = None  # None: the process was killed
    skipped: int = 0  # lines that could not be read

    @property
    def events(self) -> list[Happened]:
        return [item for item in self.happened if isinstance(item, Happened)]

    @property
    def folded(self) -> list[Folded]:
        return [item for item in self.happened if isinstance(item, Folded)]

    @property
    def iterations(self) -> int:
        """How many iterations the process ran, folded ones included."""
        if self.end is not None:
            return int(self.end.get("iterations", 0))
        kept = {each.iteration for each in self.events}
        return len(kept) + sum(each.iterations for each in self.folded)

    @property
    def name(self) -> str:
        """What to call this process: its rank, or its pid."""
        rank = self.header.rank
        return f"rank {rank}" if rank is not None else f"process {self.header.pid}"


@dataclass(frozen=True, slots=True)
class Trace:
    """A run: a section for each of its processes."""

    path: Path
    sections: tuple[Section, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for section in self.sections for finding in section.findings]

    @property
    def notes(self) -> list[str]:
        return list(dict.fromkeys(note for section in self.sections for note in section.notes))


def read_trace(path: Path | str) -> Trace:
    """Return the trace in `path` and in the parts beside it that were never merged."""
    path = Path(path)
    sections = list(_read_file(path))
    parts = path.with_name(path.name + PARTS)
    for part in sorted(parts.glob("*.jsonl")) if parts.is_dir() else ():
        try:
            sections += _read_file(part)
        except TraceError:
            continue  # killed before its first line was whole
    started = min(section.header.started for section in sections)
    sections.sort(key=lambda section: _order(section.header, started))
    return Trace(path, tuple(sections))


def _order(header: Header, started: float) -> tuple[int, float]:
    return (header.rank if header.rank is not None else -1, header.started - started)


def _read_file(path: Path) -> Iterator[Section]:
    section: Section | None = None
    sites: dict[int, Event] = {}
    for number, line in enumerate(_lines(path), 1):
        record = _record(line)
        if section is None and (record is None or record.get("format") != "zerograd-trace"):
            raise TraceError(f"{path}: line {number} is no header of a zerograd trace.\n{_NEXT}")
        if record is not None and record.get("type") == "header":
            if section is not None:
                yield section
            section, sites = Section(_header(path, record)), {}
        elif section is not None:
            _take(section, sites, record)
    if section is None:
        raise TraceError(f"{path}: empty; a trace starts with a header line.\n{_NEXT}")
    yield section


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({error.strerror}).\n{_NEXT}") from error


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _header(path: Path, record: Mapping[str, Any]) -> Header:
    try:
        header = Header.from_json(record)
    except (TypeError, ValueError) as error:
        raise TraceError(f"{path}: the header cannot be read ({error}).") from error
    if header.version > VERSION:
        raise TraceError(
            f"{path}: written in version {header.version} of the format, this zerograd reads up "
            f"to {VERSION}.\n  Update zerograd, or record the run again."
        )
    return header


def _take(section: Section, sites: dict[int, Event], record: dict[str, Any] | None) -> None:
    if record is None:
        section.skipped += 1
        return
    try:
        _TAKERS.get(str(record.get("type")), _skip)(section, sites, record)
    except (KeyError, TypeError, ValueError, AttributeError):
        section.skipped += 1


def _skip(section: Section, sites: dict[int, Event], record: dict[str, Any]) -> None:
    """Lines of a kind that a later version of the tool adds are passed over."""


def _take_site(section: Section, sites: dict[int, Event], record: dict[str, Any]) -> None:
    sites[int(record["site"])] = site_from_json(record)


def _take_event(section: Section, sites: dict[int, Event], record: dict[str, Any]) -> None:
    event = sites[int(record["site"])]
    if "backward" in record:
        event = replace(event, backward=str(record["backward"]))
    happened = Happened(
        event, int(record["iteration"]), float(record["t"]), record.get("extra") or {}
    )
    section.happened.append(happened)


def _take_measured(section: Section, sites: dict[int, Event], record: dict[str, Any]) -> None:
    event, iteration = sites[int(record["site"])], int(record["iteration"])
    extra = dict(record["extra"])
    target = None
    for number in range(len(section.happened) - 1, -1, -1):
        each = section.happened[number]
        if not isinstance(each, Happened):
            continue
        if each.iteration < iteration:
            break
        is_of_site = replace(each.event, backward="") == event
        if is_of_site and each.iteration == iteration and not extra.keys() & each.extra.keys():
            target = number, each
    if target is not None:
        number, each = target
        section.happened[number] = replace(each, extra={**each.extra, **extra})


def _take_folded(section: Section, sites: dict[int, Event], record: dict[str, Any]) -> None:
    counts = {str(kind): int(count) for kind, count in record["events"].items()}
    folded = Folded(
        int(record["first"]), int(record["last"]), int(record.get("iterations", 0)), counts
    )
    section.happened.append(folded)


def _take_finding(section: Section, sites: dict[int, Event], record: dict[str, Any]) -> None:
    finding = finding_from_json(record)
    for number, earlier in enumerate(section.findings):
        if earlier.key == finding.key:  # told again at the end, with all its counts
            section.findings[number] = finding
            return
    section.findings.append(finding)


def _take_note(section: Section, sites: dict[int, Event], record: dict[str, Any]) -> None:
    section.notes.append(str(record["text"]))


def _take_end(section: Section, sites: dict[int, Event], record: dict[str, Any]) -> None:
    section.end = record


_TAKERS = {
    "site": _take_site,
    "event": _take_event,
    "measured": _take_measured,
    "folded": _take_folded,
    "finding": _take_finding,
    "note": _take_note,
    "end": _take_end,
}


def merge_parts(path: Path | str, parts: Sequence[Path], findings: Sequence[Finding] = ()) -> None:
    """Append the sections in `parts` to the trace in `path`, and remove them.

    Args:
        findings: what was found by comparing the sections; it stands after the last of them.
    """
    with Path(path).open("ab") as whole:
        for part in parts:
            data = part.read_bytes()
            whole.write(data if data.endswith(b"\n") or not data else data + b"\n")
        for finding in findings:
            step = finding.live.step if finding.live is not None else None
            line = dumps({"type": "finding", "iteration": step, **finding.to_json()})
            whole.write(f"{line}\n".encode("ascii"))
    for part in parts:
        part.unlink()
