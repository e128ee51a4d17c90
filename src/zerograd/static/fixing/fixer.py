"""Fixes, offered only when proved: the result parses, the finding is gone, none is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from zerograd.errors import UnreadableSourceError
from zerograd.lifecycle.findings import Edit, Finding, Fix
from zerograd.lifecycle.rule import Severity
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.raised import raised_in
from zerograd.static.fixing.edits import CannotEdit, Moves, apply_edits, in_cells
from zerograd.static.fixing.remedies import Remedy, remedies
from zerograd.static.source import Source

MOST_TRIED = 8  # remedies a finding
MOST_OFFERED = 50  # findings of one file that are looked at: each costs a check of the file
MOST_ROUNDS = 200  # fixes applied to one file

Judge = Callable[[Source], list[Finding]]  # all findings, shown or not
Key = tuple[str, str, str, int]
Shown = Callable[[Sequence[Finding], Source], list[Finding]]


class Fixer:
    """Tries remedies on a source and keeps those that the checker itself agrees with."""

    def __init__(self, judge: Judge, shown: Shown) -> None:
        self._judge = judge
        self._shown = shown

    def offer(
        self, source: Source, everything: Sequence[Finding], found: Sequence[Finding]
    ) -> list[Finding]:
        """Return the findings in `found`, those that can be fixed with their fix."""
        offered = []
        for number, finding in enumerate(found):
            proved = self._prove(source, everything, finding) if number < MOST_OFFERED else None
            if proved is not None:
                remedy = proved[0]
                edits = _edits_shown(source, remedy.edits)
                finding = replace(finding, fix=Fix(remedy.message, edits))
            offered.append(finding)
        return offered

    def fix_all(
        self, source: Source, everything: list[Finding]
    ) -> tuple[Source, list[Finding], int]:
        """Return the source with all that can be fixed, its findings, and the fixes made.

        One fix at a time: the next one is judged on what the last one left. Each
        makes the findings fewer, so this ends.
        """
        count = 0
        while count < MOST_ROUNDS:
            for finding in self._shown(everything, source):
                proved = self._prove(source, everything, finding)
                if proved is not None:
                    _, source, everything = proved
                    count += 1
                    break
            else:
                break
        return source, everything, count

    def _prove(
        self, source: Source, everything: Sequence[Finding], finding: Finding
    ) -> tuple[Remedy, Source, list[Finding]] | None:
        """Return the first remedy that cures `finding`, and what the source is like then."""
        if not finding.certain or finding.spot.path != source.path:
            return None
        for number, remedy in enumerate(remedies(source, finding)):
            if number == MOST_TRIED:
                return None
            try:
                if source.notebook is not None and len(in_cells(source, remedy.edits)) != 1:
                    continue
                changed = apply_edits(source, remedy.edits)
            except (CannotEdit, UnreadableSourceError, UnicodeEncodeError):
                continue
            left = self._judge(changed)
            moves = Moves(source.text, remedy.edits)
            old, new = _Names(source, moves.before), _Names(changed, moves.after)
            before, after = old.counted(everything), new.counted(left)
            # What was found on some paths only must not become certain either.
            surer = new.counted(_certain(left)) - old.counted(_certain(everything))
            key = old.key(finding)
            cured = after[key] < before[key] and not after - before and not surer
            if cured and not _raised(changed) - _raised(source):
                return remedy, changed, left
        return None


class _Names:
    """What findings are known by before and after an edit, which moves lines.

    A place that the edit left is known by where it was before, one that came,
    went or was moved by the text of its line.
    """

    def __init__(self, source: Source, place: Callable[[int, int], int | None]) -> None:
        self._source = source
        self._place = place

    def counted(self, findings: Sequence[Finding]) -> Counter[Key]:
        """Return the findings by key. Notes are left out: a loop that now works may deserve one."""
        worse = (each for each in findings if each.rule.severity is not Severity.NOTE)
        return Counter(map(self.key, worse))

    def key(self, finding: Finding) -> Key:
        source, code, owner = self._source, finding.rule.code, finding.owner
        if finding.spot.path != source.path:
            return code, owner, finding.spot.path, finding.spot.line
        row = source.row(finding.spot)
        place = self._place(row, finding.spot.column)
        if place is not None:
            return code, owner, source.path, place
        return code, owner, source.lines[row - 1].strip(), 0


def _raised(source: Source) -> Counter[str]:
    """Return the calls of scalers at which torch raises on some path at least, by their text."""
    if ".update(" not in source.text:
        return Counter()
    functions = (each for each in parts_below(source.tree) if isinstance(each, FunctionNode))
    return Counter(
        source.segment(each.call)
        for function in (*functions, source.tree)
        for each in raised_in(function, source)
    )


def _certain(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.certain]


def _edits_shown(source: Source, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the edits as findings carry them: a notebook's by the rows of the cell."""
    if source.notebook is not None:
        edits = next(iter(in_cells(source, edits).values()))
    return tuple(sorted(edits, key=lambda edit: (edit.row, edit.column)))
