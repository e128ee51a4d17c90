"""Allow comments applied to findings: what is silenced, and which comments are idle."""

from __future__ import annotations

from collections.abc import Sequence

from zerograd.errors import UnknownRuleError
from zerograd.lifecycle.allow import Allowance, read_allowances
from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Witness
from zerograd.rules.selection import matching
from zerograd.rules.unused_allow import RULE as UNUSED_ALLOW
from zerograd.static.source import Source

_NAME_A_RULE = "name one that `zerograd rules` lists"
LEFT_TO_SAY = "TODO: say why this is right"  # what --add-allow writes for the reason


def apply_allowances(findings: Sequence[Finding], source: Source) -> list[Finding]:
    """Return the findings that no comment allows, and one for each comment at fault.

    `findings` must be all that was found, also what is not to be shown, so that a
    comment for a hidden finding is not called idle.
    """
    allowances = read_allowances(source.text)
    if not allowances:
        return list(findings)
    used: set[tuple[int, str]] = set()  # (which allowance, the word that was needed)
    kept = []
    for finding in findings:
        if not _silenced(finding, source, allowances, used):
            kept.append(finding)
    for number, allowance in enumerate(allowances):
        fault = _fault(number, allowance, used)
        if fault is not None:
            idle = _finding(source, allowance, *fault)
            if not _silenced(idle, source, allowances, used):
                kept.append(idle)
    return kept


def _silenced(
    finding: Finding,
    source: Source,
    allowances: Sequence[Allowance],
    used: set[tuple[int, str]],
) -> bool:
    row = source.row(finding.spot)
    end_row = row + max(finding.spot.end_line - finding.spot.line, 0)
    rule = finding.rule
    silenced = False
    for number, allowance in enumerate(allowances):
        if allowance.covers(rule.code, rule.name, row, end_row):
            silenced = True
            used.update((number, word) for word in allowance.words_for(rule.code, rule.name))
    return silenced


def _fault(number: int, allowance: Allowance, used: set[tuple[int, str]]) -> tuple[str, str] | None:
    """Return (message, advice) of what is wrong with a comment, or None."""
    if allowance.noqa:
        return None  # other tools own it, and say when it is idle
    if allowance.malformed:
        return (
            f"this comment cannot be read: {allowance.malformed}",
            "write `# zerograd: allow[stale-gradient] reason`",
        )
    idle = []
    for word in allowance.words:
        try:
            rules = matching(word)
        except UnknownRuleError as error:
            return f"this comment allows nothing: {str(error).splitlines()[0]}", _NAME_A_RULE
        judged = any(rule.seen_by & Witness.STATIC for rule in rules)
        if judged and (number, word) not in used:
            idle.append(word)
    if idle:
        allowed = " and ".join(idle)
        advice = UNUSED_ALLOW.advice if len(idle) == len(allowance.words) else f"remove {allowed}"
        return UNUSED_ALLOW.summary.format(allowed=allowed), advice
    if not allowance.reason:
        names = ", ".join(allowance.words)
        return (
            f"this comment allows {names} without a reason",
            f"say why: `# zerograd: allow[{names}] reason`",
        )
    return None


def _finding(source: Source, allowance: Allowance, message: str, advice: str) -> Finding:
    line, cell = allowance.line, None
    if source.notebook is not None:
        cell, line = source.notebook.place(allowance.line)
    end = len(source.lines[allowance.line - 1]) + 1
    spot = Spot(source.path, line, allowance.column, line, end, cell)
    return Finding(UNUSED_ALLOW, spot, message, advice)


def add_allowances(findings: Sequence[Finding], source: Source) -> dict[int, str]:
    """Return the rows of `source.text` to replace so that each finding is allowed.

    The comment goes to the end of the statement: no other place can always hold one.
    """
    names: dict[int, list[str]] = {}
    ends = _statement_ends(source)
    for finding in findings:
        row = source.row(finding.spot)
        row = ends.get(row, row)
        listed = names.setdefault(row, [])
        if finding.rule.name not in listed and finding.rule is not UNUSED_ALLOW:
            listed.append(finding.rule.name)
    changed = {}
    for row, listed in names.items():
        if listed:
            comment = f"# zerograd: allow[{', '.join(listed)}] {LEFT_TO_SAY}"
            changed[row] = f"{source.lines[row - 1].rstrip()}  {comment}"
    return changed


def _statement_ends(source: Source) -> dict[int, int]:
    """Return for each row of a statement of several rows its last row."""
    import io
    import tokenize

    ends: dict[int, int] = {}
    start = 0
    text = "\n".join(source.lines) + "\n"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            if start and start != token.start[0]:
                ends.update(dict.fromkeys(range(start, token.start[0] + 1), token.start[0]))
            start = 0
        elif not start and token.type not in (
            tokenize.NL,
            tokenize.COMMENT,
            tokenize.INDENT,
            tokenize.DEDENT,
        ):
            start = token.start[0]
    return ends
