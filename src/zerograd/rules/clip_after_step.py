"""ZG304 clip-after-step: clipping what the step has used already, or before there is anything."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Over, Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState

_TOO_SOON = "gradients are clipped before backward() has filled them, so the clip does nothing"

# of what is gone through once: who clips it again clips nothing
USED_UP = "{name} is an iterator that has been gone through before, so the clip finds nothing"
MAKE_A_LIST = "write `{name} = list({made})`"


def _breaks(before: BucketState, event: Event) -> bool:
    # A step of another optimizer on the same loss has not used this bucket: the next one may.
    # Nor is it used by who looks at the gradient of an input.
    return bool(before.contributions) and all(
        (each.used_by - each.read_by) & before.stepped for each in before.contributions
    )


def _tells(before: BucketState, event: Event) -> Story:
    if not before.contributions:
        trail = ((event.spot, "comes before there is anything to clip"),)
        return Story(event.spot, trail, summary=_TOO_SOON)
    used = before.contributions[-1]
    return Story(
        event.spot,
        (
            (used.used_at, "steps on the unclipped gradients"),
            (event.spot, "clips what has been used already"),
        ),
    )


RULE = Rule(
    code="ZG304",
    name="clip-after-step",
    summary="gradients are clipped after the step has used them, so the clip does nothing",
    advice="clip between backward() and the step",
    severity=Severity.WARNING,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.CLIP}),
    breaks=_breaks,
    tells=_tells,
    over=Over.FILLED,
)
