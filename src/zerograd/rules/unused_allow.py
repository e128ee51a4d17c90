"""ZG901 unused-allow: an allow comment that silences nothing."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG901",
    name="unused-allow",
    summary="this comment allows {allowed}, which nothing here breaks",
    advice="remove the comment",
    severity=Severity.WARNING,
    seen_by=Witness.STATIC,
    kind=RuleKind.SYNTAX,
)
