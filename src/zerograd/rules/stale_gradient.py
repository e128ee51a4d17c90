"""ZG101 stale-gradient: a step uses gradients that an earlier step already used."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState, Phase


def _breaks(before: BucketState, event: Event) -> bool:
    return not event.leaf and before.phase(event.owner) is Phase.STALE


def _tells(before: BucketState, event: Event) -> Story:
    used = next((each for each in before.contributions if event.owner in each.used_by), None)
    new = next((each for each in before.contributions if event.owner not in each.used_by), None)
    return Story(
        event.spot,
        (
            (used.used_at if used else None, "steps; nothing clears the gradients it used"),
            (new.spot if new else None, "adds onto them"),
            (event.spot, "steps on both"),
        ),
    )


RULE = Rule(
    code="ZG101",
    name="stale-gradient",
    summary="{owner}.step() uses gradients that an earlier step already used",
    advice="call {owner}.zero_grad() between one step and the next backward()",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    tells=_tells,
    after_step=True,
)
