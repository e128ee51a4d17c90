"""ZG505 sync-every-micro-batch: two or more synchronised DDP backwards in one window."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG505",
    name="sync-every-micro-batch",
    summary="every micro-batch of a window all-reduces its gradients over the ranks",
    advice="run all but the last micro-batch, forward and backward, inside model.no_sync()",
    severity=Severity.NOTE,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.SUMMARY,
)
