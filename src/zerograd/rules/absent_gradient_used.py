"""ZG104 absent-gradient-used: `.grad` used as a tensor where it is, or may be, None."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Witness
from zerograd.lifecycle.state import BucketState

WIPES = frozenset({"zero_", "fill_"})
# Where it is not about to be cleared, zero_grad() is no mend.
USE_LATER = "use it after the backward() that fills it, or test `is not None` first"


def _breaks(before: BucketState, event: Event) -> bool:
    return before.absent


RULE = Rule(
    code="ZG104",
    name="absent-gradient-used",
    summary="{owner}.grad is used where it is or may be None",
    advice="test `is not None` first, or clear with zero_grad()",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.TOUCH}),
    breaks=_breaks,
)
