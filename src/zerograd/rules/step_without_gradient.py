"""ZG401 step-without-gradient: a step with nothing filled since the last clear."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Over, Rule, RuleKind, Severity, Witness
from zerograd.lifecycle.state import BucketState, Phase


def _breaks(before: BucketState, event: Event) -> bool:
    return before.seen and not event.leaf and before.phase(event.owner) is Phase.EMPTY


RULE = Rule(
    code="ZG401",
    name="step-without-gradient",
    summary="{owner}.step() finds no gradients: nothing was filled since the last clear",
    advice="call backward() before {owner}.step()",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    over=Over.ALL,
)
