"""ZG601 rank-desync: ranks that no longer train the same model."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG601",
    name="rank-desync",
    summary="the ranks no longer train the same model: {fault}",
    advice="{better}",
    severity=Severity.ERROR,
    seen_by=Witness.RUNTIME,
    kind=RuleKind.SUMMARY,
)
