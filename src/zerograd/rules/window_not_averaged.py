"""ZG503 window-not-averaged: k backwards from one spot into one step, the loss divided nowhere."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG503",
    name="window-not-averaged",
    summary="several backward() calls are summed into one {owner}.step(), the loss divided nowhere",
    advice="divide the loss by the number of micro-batches in the window",
    severity=Severity.NOTE,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.SUMMARY,
)
