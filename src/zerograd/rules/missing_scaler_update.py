"""ZG302 missing-scaler-update: `scaler.step` without `scaler.update` on that path."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState


def _breaks(before: BucketState, event: Event) -> bool:
    return bool(event.scaler) and event.owner in before.awaiting


def _tells(before: BucketState, event: Event) -> Story:
    return Story(event.spot, (), (("scaler", event.scaler or "scaler"),))


RULE = Rule(
    code="ZG302",
    name="missing-scaler-update",
    summary="{scaler}.step({owner}) is not followed by {scaler}.update()",
    advice="call {scaler}.update() once after the last {scaler}.step() of an iteration",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    tells=_tells,
    after_step=True,
)
