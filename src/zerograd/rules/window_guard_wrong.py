"""ZG504 window-guard-wrong: a window's guard that is never true, always true, or off by one."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG504",
    name="window-guard-wrong",
    summary="the condition `{condition}` around {owner}.step() {fault}",
    advice="write `{better}`",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC,
    kind=RuleKind.SYNTAX,
)
