"""What a run says, in the user's terms: paths from where they stood, notes as sentences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Finding
from zerograd.report.excerpt import Source, read_source


def near(finding: Finding, cwd: str) -> Finding:
    """Return the finding with every path in it made relative to `cwd`, where it lies below."""
    trail = tuple(replace(each, spot=near_spot(each.spot, cwd)) for each in finding.trail)
    return replace(finding, spot=near_spot(finding.spot, cwd), trail=trail)


def near_spot(spot: Spot, cwd: str) -> Spot:
    prefix = os.path.join(cwd, "")
    if not cwd or not spot.path.startswith(prefix):
        return spot
    return spot._replace(path=spot.path[len(prefix) :])


def source_from(cwd: str) -> Source:
    """Return a source that reads relative paths from `cwd`, wherever this process stands."""

    def read(path: str, cell: int | None) -> Sequence[str]:
        return read_source(os.path.join(cwd, path) if cwd else path, cell)

    return read


def worded_note(note: str) -> str:
    """Return a remark of the run as one line: what is not followed, or not checked."""
    return note if note.startswith(("not followed", "no trace")) else f"not checked: {note}"
