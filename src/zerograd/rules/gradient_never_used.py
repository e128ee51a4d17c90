"""ZG203 gradient-never-used: cleared and filled every iteration, never stepped."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG203",
    name="gradient-never-used",
    summary="{owner} is filled in every iteration but never stepped",
    advice="call {owner}.step() after backward(), or remove {owner}",
    severity=Severity.WARNING,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.SUMMARY,
)
