"""ZG102 lost-gradient: a clear between backward and step, so that the step sees nothing."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Over, Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState, Phase


def _breaks(before: BucketState, event: Event) -> bool:
    return (
        not event.leaf
        and before.phase(event.owner) is Phase.EMPTY
        and before.lost is not None
        and before.lost.finite
    )


def _tells(before: BucketState, event: Event) -> Story:
    if before.lost is None:
        return Story(event.spot)
    return Story(
        before.lost.clear,
        (
            (before.lost.backward, "fills the gradients"),
            (before.lost.clear, "throws them away, unused"),
            (event.spot, "steps on nothing"),
        ),
    )


RULE = Rule(
    code="ZG102",
    name="lost-gradient",
    summary="gradients are cleared between backward() and {owner}.step(), so the step sees nothing",
    advice="clear after {owner}.step(), or before backward()",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    tells=_tells,
    over=Over.ALL,
    windowed=True,
)
