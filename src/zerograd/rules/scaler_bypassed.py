"""ZG303 scaler-bypassed: a scaled loss, stepped outside `scaler.step`."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState

# The other half: a step through a scaler that has never scaled the loss.
NEVER_SCALED = (
    "the loss goes backward unscaled, but {scaler}.step({owner}) divides its gradients by the scale"
)
SCALED_NONE = (
    "the loss goes backward unscaled, and {scaler} has scaled none: {scaler}.step({owner}) raises"
)
# And where both kinds of loss meet in the same gradients.
MIXED = (
    "the loss goes backward unscaled into gradients that {scaler} has scaled, "
    "and {scaler}.step({owner}) divides all of them by the scale"
)
SCALE_IT = "write {scaler}.scale(…).backward()"
# And one more: the scaler believes that what comes next has been unscaled already.
UNSCALED_AFTER = (
    "{scaler}.unscale_({owner}) comes after {scaler}.update(), "
    "so the next {scaler}.step({owner}) leaves the scale in"
)
# And where the factor has been taken out: overflow is noted, and nobody asks.
STEPPED_PAST = (
    "{owner}.step() goes past {scaler}, so gradients that overflowed are stepped on as well"
)
LEFT_IN = "{scaler}.step({owner}) leaves the scale in what came after {scaler}.unscale_({owner})"
UNSCALE_BEFORE = (
    "call {scaler}.unscale_({owner}) between the last backward() and {scaler}.step({owner})"
)


def by_hand(finding: Finding, scaler: str) -> Finding:
    """Return the finding in the words for weights that are updated without an optimizer."""
    owner = finding.owner.removesuffix(".data")  # which has no gradient of its own
    steps = "steps with the scale still in them"
    return replace(
        finding,
        message=f"the update of {owner} uses gradients of a scaled loss, with the scale in them",
        advice=f"divide {owner}.grad by {scaler}.get_scale() first, "
        "and leave the update out where that is not finite",
        trail=tuple(
            replace(each, text=each.text.replace(steps, "updates with the scale still in them"))
            for each in finding.trail
        ),
    )


def _breaks(before: BucketState, event: Event) -> bool:
    if not before.scaled or not before.contributions or event.leaf:
        return False
    return not event.scaler or _is_left_in(before, event)


def _is_left_in(before: BucketState, event: Event) -> bool:
    """Was the owner unscaled before the loss that it steps on? A scaler does that once."""
    return event.scaler == before.scaled and event.owner in before.halfway - before.awaiting


def _tells(before: BucketState, event: Event) -> Story:
    scaled = before.contributions[-1] if before.contributions else None
    if event.scaler:
        return Story(
            event.spot,
            (
                (scaled.spot if scaled else None, "fills the gradients, multiplied by the scale"),
                (event.spot, "takes them for unscaled, and leaves the scale in"),
            ),
            (("scaler", event.scaler),),
            LEFT_IN,
            UNSCALE_BEFORE,
        )
    return Story(
        event.spot,
        (
            (scaled.spot if scaled else None, "fills the gradients, multiplied by the scale"),
            (event.spot, "steps with the scale still in them"),
        ),
        (("scaler", before.scaled or "scaler"),),
    )


RULE = Rule(
    code="ZG303",
    name="scaler-bypassed",
    summary="{owner}.step() uses gradients of a scaled loss, past the scaler",
    advice="write {scaler}.step({owner}), then {scaler}.update()",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    tells=_tells,
    filled=True,
)
