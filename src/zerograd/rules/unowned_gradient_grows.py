"""ZG105 unowned-gradient-grows: a parameter of no optimizer, filled and never cleared."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG105",
    name="unowned-gradient-grows",
    summary="no optimizer holds {owner}; every backward() adds to the gradient, none clears",
    advice="clear it with model.zero_grad(), or freeze it with requires_grad_(False)",
    severity=Severity.NOTE,
    seen_by=Witness.RUNTIME,
    kind=RuleKind.SUMMARY,
)
