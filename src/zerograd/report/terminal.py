"""Findings for people: the place, the source, how it came about, what to do."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import NEXT_CALL, NEXT_ROUND, Finding, Live, TrailStep
from zerograd.lifecycle.rule import Severity
from zerograd.report.excerpt import Source, excerpt, read_source, visible
from zerograd.report.reporter import NOTHING_MORE, Closing

_LABEL = "  {:<6}"
_MOST_PARAMETERS = 3


class Paint:
    """Words in colour, or as they are."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._color and text else text

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def severity(self, severity: Severity, text: str) -> str:
        codes = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
        return self._in(codes[severity], text)

    def good(self, text: str) -> str:
        return self._in("32", text)


class TerminalReporter:
    """Write each finding as a block, then a count. Decides nothing, sorts nothing."""

    def __init__(
        self,
        *,
        color: bool = False,
        width: int = 100,
        source: Source = read_source,
        closing: Closing = NOTHING_MORE,
    ) -> None:
        self._paint = Paint(color)
        self._width = max(40, width)
        self._source = source
        self._closing = closing

    def write(self, findings: Sequence[Finding], out: TextIO) -> None:
        for finding in findings:
            out.write("\n".join(self._block(finding)) + "\n\n")
        out.write(self._summary(findings) + "\n")

    def _block(self, finding: Finding) -> list[str]:
        rule, paint = finding.rule, self._paint
        where = visible(str(finding.spot))
        severity = paint.severity(rule.severity, rule.severity.value)
        message = visible(finding.message) + ("" if finding.certain else " (on some paths)")
        lines = [
            f"{paint.bold(where)}: {paint.severity(rule.severity, rule.code)} {rule.name}",
            *self._wrapped(f"  {severity}: ", len(rule.severity.value) + 4, message),
        ]
        shown = self._excerpt(finding)
        if shown:
            lines += ["", *shown, ""]
        lines += self._trail(finding)
        if finding.live is not None:
            lines += self._labelled("seen", _seen(finding.live, finding.often))
        advice = visible(finding.advice)
        if finding.fix is not None:
            advice += " (--fix does it)"
        return lines + self._labelled("fix", advice)

    def _excerpt(self, finding: Finding) -> list[str]:
        spot = finding.spot
        also = [each.spot.line for each in finding.trail if _same_text(each.spot, spot)]
        shown = excerpt(spot, self._source, also=also, width=self._width - 2)
        return [f"  {self._painted(line, finding.rule.severity)}" for line in shown]

    def _painted(self, line: str, severity: Severity) -> str:
        gutter, bar, text = line.partition("|")
        if not gutter.strip() and set(text.strip()) == {"^"}:
            text = self._paint.severity(severity, text)
        return self._paint.dim(gutter + bar) + text

    def _trail(self, finding: Finding) -> list[str]:
        lines: list[str] = []
        for number, station in enumerate(finding.trail):
            place, words = _place(station.spot, finding.spot), visible(station.text)
            again = next((each for each in (NEXT_ROUND, NEXT_CALL) if words.startswith(each)), "")
            words = words.removeprefix(again)
            code = visible(station.code or self._statement(station))
            start = "→ " if number else ""
            start += again
            text = f"{start}{place} " + (f"`{code}` " if code else "") + words
            lines += self._labelled("how" if number == 0 else "", text)
        return lines

    def _statement(self, station: TrailStep) -> str:
        """Return the line of the user's own source, for a witness that did not keep its text."""
        lines = self._source(station.spot.path, station.spot.cell)
        if not 1 <= station.spot.line <= len(lines):
            return ""
        text = lines[station.spot.line - 1].strip()
        return text if len(text) <= 60 else text[:57] + "..."

    def _labelled(self, label: str, text: str) -> list[str]:
        start = _LABEL.format(f"{label}:" if label else "")
        lines = self._wrapped(start, len(start), text)
        if label:
            painted = self._paint.good if label == "fix" else self._paint.dim
            lines[0] = painted(start) + lines[0][len(start) :]
        return lines

    def _wrapped(self, start: str, taken: int, text: str) -> list[str]:
        return textwrap.wrap(
            text,
            width=self._width + len(start) - taken,  # colours take no room
            initial_indent=start,
            subsequent_indent=" " * taken + ("  " if text.startswith("→ ") else ""),
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        ) or [start]

    def _summary(self, findings: Sequence[Finding]) -> str:
        closing, hidden = self._closing, _hidden(self._closing.hidden)
        words = f" {closing.words}" if closing.words else ""
        if not findings and closing.ended:
            return f"{self._paint.bold(closing.ended)}; no findings until then{hidden}.{words}"
        if not findings:
            none = "No new findings" if closing.new else "No findings"
            return f"{self._paint.good(f'{none}{hidden}.')}{words}"
        counts = Counter(finding.rule.severity for finding in findings)
        kinds = ", ".join(_count(counts[kind], kind.value) for kind in Severity if counts[kind])
        fixable = sum(finding.fix is not None for finding in findings)
        fixes = f", {fixable} fixable with --fix" if fixable else ""
        codes = sorted({finding.rule.code for finding in findings})
        named = codes[0] if len(codes) == 1 else f"CODE ({', '.join(codes)})"
        more = self._paint.dim(f"More about a rule: zerograd explain {named}")
        ended = f" {closing.ended}." if closing.ended else ""
        return f"{self._paint.bold(f'Found {kinds}')}{hidden}{fixes}.{words}{ended}\n{more}"


def _hidden(notes: int) -> str:
    if not notes:
        return ""
    return f" ({_count(notes, 'note')} hidden; --all shows {'it' if notes == 1 else 'them'})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _same_text(one: Spot, other: Spot) -> bool:
    return one.path == other.path and one.cell == other.cell


def _place(spot: Spot, home: Spot) -> str:
    """Return `line 31`, with the file or the cell where that is another one."""
    if spot.path != home.path:
        return visible(f"{spot.path}:{spot.line}")
    if spot.cell != home.cell and spot.cell is not None:
        return f"cell {spot.cell} line {spot.line}"
    return f"line {spot.line}"


def _seen(live: Live, often: str) -> str:
    """Return what the run adds: when, how often, where, how much."""
    parts = []
    if live.step is not None:
        parts.append(f"first in iteration {live.step}")
    if often:
        parts.append(often)
    if live.ranks:
        noun = "rank" if len(live.ranks) == 1 else "ranks"
        parts.append(f"on {noun} {', '.join(map(str, live.ranks))}")
    if live.leftover:
        parts.append(live.leftover)
    if live.parameters:
        names = [visible(name) for name in live.parameters[:_MOST_PARAMETERS]]
        rest = len(live.parameters) - len(names)
        parts.append("in " + ", ".join(names) + (f" and {rest} more" if rest else ""))
    return ", ".join(parts) or "once"
