"""ZG402 gradient-reused: two steps on the same gradients."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Over, Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState, Phase


def _breaks(before: BucketState, event: Event) -> bool:
    return not event.leaf and before.phase(event.owner) is Phase.SPENT


def _tells(before: BucketState, event: Event) -> Story:
    used = before.contributions[-1] if before.contributions else None
    return Story(
        event.spot,
        (
            (used.spot if used else None, "fills the gradients"),
            (used.used_at if used else None, "steps on them"),
            (event.spot, "steps on them again"),
        ),
    )


RULE = Rule(
    code="ZG402",
    name="gradient-reused",
    summary="{owner}.step() uses the same gradients a second time",
    advice="step once per backward(), or call backward() again before this step",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    tells=_tells,
    over=Over.FILLED,
    after_step=True,
)
