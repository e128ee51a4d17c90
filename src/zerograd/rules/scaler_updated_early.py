"""ZG305 scaler-updated-early: `scaler.update()` before an optimizer's own `scaler.step`."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState

UNSCALED_TWICE = (
    "{scaler}.update() comes before {scaler}.step({owner}), which then unscales a second time"
)
TWICE = "divides them by the scale a second time"


def _breaks(before: BucketState, event: Event) -> bool:
    return bool(event.scaler) and any(
        each.early is not None and each.early_by == event.scaler and event.owner not in each.used_by
        for each in before.contributions
    )


def _tells(before: BucketState, event: Event) -> Story:
    early = next((each for each in before.contributions if each.early is not None), None)
    # it has unscaled them before the update, and has forgotten that since
    again = before.unscaled == event.scaler and event.owner not in before.halfway
    return Story(
        (early.early if early else None) or event.spot,
        (
            (early.spot if early else None, "fills the gradients, multiplied by the scale"),
            (early.early if early else None, "updates the scaler, which forgets that optimizer"),
            (event.spot, TWICE if again else "steps with a scale that is not theirs"),
        ),
        (("scaler", event.scaler or "scaler"),),
        UNSCALED_TWICE if again else "",
    )


RULE = Rule(
    code="ZG305",
    name="scaler-updated-early",
    summary="{scaler}.update() comes before {scaler}.step({owner}), which then takes another scale",
    advice="call {scaler}.update() once, after the last {scaler}.step() of the iteration",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    tells=_tells,
    after_step=True,
)
