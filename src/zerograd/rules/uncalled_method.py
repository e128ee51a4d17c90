"""ZG103 uncalled-method: `opt.zero_grad`, `opt.step` or `loss.backward` written without a call."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness

RULE = Rule(
    code="ZG103",
    name="uncalled-method",
    summary="{owner}.{method} is named but not called, so it does nothing",
    advice="write {owner}.{method}()",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC,
    kind=RuleKind.SYNTAX,
)
