"""Annotations for GitHub Actions: workflow commands, one line a finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Severity
from zerograd.report.paths import slashed

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


class GithubReporter:
    """Write `::error file=…,line=…::message`, escaped as the runner unescapes it."""

    def write(self, findings: Sequence[Finding], out: TextIO) -> None:
        for finding in findings:
            fields = ",".join(f"{key}={_property(value)}" for key, value in _fields(finding))
            out.write(f"::{_LEVEL[finding.rule.severity]} {fields}::{_data(_text(finding))}\n")


def _fields(finding: Finding) -> list[tuple[str, str]]:
    spot, rule = finding.spot, finding.rule
    fields = [("file", slashed(spot.path))]
    title = f"{rule.code} {rule.name}"
    if spot.cell is not None:
        # The file's lines are JSON: a line of a cell would land somewhere else.
        return [*fields, ("title", f"{title} (cell {spot.cell}, line {spot.line})")]
    if spot.line < 1:  # a live finding whose line nobody knows
        return [*fields, ("title", title)]
    end = spot.end_line or spot.line
    fields += [("line", str(spot.line)), ("endLine", str(end))]
    if end == spot.line:  # columns are only taken together with a single line
        fields += [("col", str(spot.column))]
        if spot.end_column:
            fields += [("endColumn", str(spot.end_column))]
    return [*fields, ("title", title)]


def _text(finding: Finding) -> str:
    lines = [finding.message]
    for station in finding.trail:
        code = f" {station.code}" if station.code else ""
        lines.append(f"line {station.spot.line}{code}: {station.text}")
    return "\n".join([*lines, f"fix: {finding.advice}"])


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
