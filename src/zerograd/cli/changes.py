"""What `zerograd check` does to files: fixes, diffs of them, allow comments."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from zerograd.errors import UnreadableSourceError
from zerograd.lifecycle.findings import Edit, Finding
from zerograd.static.allow import add_allowances
from zerograd.static.fixing.edits import CannotEdit, apply_edits
from zerograd.static.source import Source
from zerograd.static.writing import write_whole


def write_all(contents: dict[str, bytes]) -> dict[str, str]:
    """Write the files, and return what is to be said of each that could not be written."""
    problems = {}
    for path, data in sorted(contents.items()):
        try:
            write_whole(path, data)
        except OSError as cause:
            problems[path] = f"not changed, {cause.strerror}"
    return problems


def write_diff(old: bytes, new: bytes, path: str, out: TextIO) -> None:
    """Write what would change, as a unified diff; of a notebook, cell by cell."""
    before, after = Source.read(old, path), Source.read(new, path)
    if before.notebook is None or after.notebook is None:
        out.writelines(_diff(before.text, after.text, path))
        return
    pairs = zip(before.notebook.sources, after.notebook.sources, strict=True)
    for number, (one, other) in enumerate(pairs, 1):
        out.writelines(_diff(one, other, f"{path}:cell {number}"))


def _diff(old: str, new: str, path: str) -> Iterator[str]:
    one, other = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for line in difflib.unified_diff(one, other, path, path):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def allow_all(findings: Sequence[Finding]) -> tuple[dict[str, bytes], int]:
    """Return the files with a comment at each finding, and how many comments that makes."""
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        by_path.setdefault(finding.spot.path, []).append(finding)
    contents: dict[str, bytes] = {}
    count = 0
    for path, here in by_path.items():
        try:
            with open(path, "rb") as file:
                source = Source.read(file.read(), path)
            lines = add_allowances(here, source)
            edits = [
                Edit(row, 1, row, len(source.lines[row - 1]) + 1, text)
                for row, text in lines.items()
            ]
            contents[path] = apply_edits(source, edits).data()
            count += len(edits)
        except (OSError, CannotEdit, UnreadableSourceError) as cause:
            print(f"zerograd: {path}: no comment added ({cause})", file=sys.stderr)
    return contents, count
