"""Allow comments applied to findings: what is silenced, and which comments are idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zerograd.errors import UnknownRuleError
from zerograd.lifecycle.allow import Allowance, read_allowances
from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Witness
from zerograd.rules import ALL_RULES
from zerograd.rules.selection import matching
from zerograd.rules.unused_allow import RULE as UNUSED_ALLOW
from zerograd.static.source import Source

_NAME_A_RULE = "name one that `zerograd rules` lists"
LEFT_TO_SAY = "TODO: say why this is right"  # what --add-allow writes for the reason


Use = tuple[str, int, str]  # path, row of the comment, the word in it that was needed
Others = Callable[[str], Source | None]  # the sources of other paths


def _no_others(path: str) -> Source | None:
    return None


def apply_allowances(
    findings: Sequence[Finding], source: Source, others: Others = _no_others
) -> tuple[list[Finding], set[Use]]:
    """Return the findings that no comment allows, one for each comment at fault, and the uses.

    `findings` must be all that was found, also what is not to be shown, so that a
    comment for a hidden finding is not called idle. A finding in another module
    is allowed by the comments there.
    """
    if not findings and "zerograd:" not in source.text:
        return [], set()  # `noqa` alone is never at fault
    judged = _Comments(source, others)
    kept = [finding for finding in findings if not judged.allow(finding)]
    for allowance in judged.of(source.path):
        fault = _fault(allowance, source.path, judged.used)
        if fault is not None:
            idle = _finding(source, allowance, *fault)
            if not judged.allow(idle):
                kept.append(idle)
    return kept, judged.used


class _Comments:
    """The allow comments of a source and of the modules that findings lead to."""

    def __init__(self, source: Source, others: Others) -> None:
        self._sources: dict[str, Source | None] = {source.path: source}
        self._others = others
        self._read: dict[str, tuple[Allowance, ...]] = {}
        self.used: set[Use] = set()

    def _source(self, path: str) -> Source | None:
        if path not in self._sources:
            self._sources[path] = self._others(path)
        return self._sources[path]

    def of(self, path: str) -> tuple[Allowance, ...]:
        if path not in self._read:
            source = self._source(path)
            self._read[path] = read_allowances(source.text) if source is not None else ()
        return self._read[path]

    def allow(self, finding: Finding) -> bool:
        """Is the finding allowed? If so, the comments that do it are used."""
        spot, rule = finding.spot, finding.rule
        source = self._source(spot.path)
        if source is None:
            return False
        row = source.row(spot)
        end_row = row + max(spot.end_line - spot.line, 0)
        allowed = False
        for each in self.of(spot.path):
            if each.covers(rule.code, rule.name, row, end_row):
                allowed = True
                words = each.words_for(rule.code, rule.name)
                self.used.update((spot.path, each.line, word) for word in words)
        return allowed


def without_used(findings: Sequence[Finding], used: set[Use]) -> list[Finding]:
    """Return the findings without comments called idle that the check of another file needed."""
    if not used:
        return list(findings)
    return [each for each in findings if not _is_used(each, used)]


def _is_used(finding: Finding, used: set[Use]) -> bool:
    if finding.rule.code != UNUSED_ALLOW.code:
        return False
    spot = finding.spot
    return any(
        (spot.path, spot.line, word) in used
        and UNUSED_ALLOW.summary.format(allowed=word) == finding.message
        for word in {word for path, line, word in used if (path, line) == (spot.path, spot.line)}
    )


def _fault(allowance: Allowance, path: str, used: set[Use]) -> tuple[str, str] | None:
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
        if len(rules) == len(ALL_RULES):
            return f"this comment allows nothing: {word} names no rule", _NAME_A_RULE
        judged = any(rule.seen_by & Witness.STATIC for rule in rules)
        if judged and (path, allowance.line, word) not in used:
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
