"""ZG502 tail-lost: the last, short window of an epoch is dropped, or leaks into the next."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG502",
    name="tail-lost",
    summary="the last, short window of an epoch is dropped or leaks into the next epoch",
    advice="step once more after the loop if micro-batches are left, or drop them on purpose",
    severity=Severity.NOTE,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.SUMMARY,
)
