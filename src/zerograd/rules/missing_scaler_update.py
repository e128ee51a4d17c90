"""ZG302 missing-scaler-update: `scaler.step` or `unscale_` without `scaler.update` on that path."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState, Phase

TOO_LATE = "{scaler}.unscale_({owner}) comes between {scaler}.step({owner}) and {scaler}.update()"


def _breaks(before: BucketState, event: Event) -> bool:
    if not event.scaler:
        return False
    if event.kind is EventKind.UNSCALE:  # after a step it is the step that waits for the update
        return event.owner in before.halfway - before.awaiting or _is_too_late(before, event)
    return event.owner in before.awaiting


def _is_too_late(before: BucketState, event: Event) -> bool:
    """Is it unscaled right after its step, with nothing new in it?"""
    return event.owner in before.awaiting and before.phase(event.owner) is Phase.SPENT


def _tells(before: BucketState, event: Event) -> Story:
    names = [("scaler", event.scaler or "scaler"), ("call", "step"), ("also", "")]
    if event.kind is EventKind.UNSCALE and _is_too_late(before, event):
        return Story(event.spot, (), tuple(names), TOO_LATE)
    if event.kind is EventKind.UNSCALE:
        names[1:] = [("call", "unscale_"), ("also", ", also where the step is skipped")]
    return Story(event.spot, (), tuple(names))


RULE = Rule(
    code="ZG302",
    name="missing-scaler-update",
    summary="{scaler}.{call}({owner}) is not followed by {scaler}.update()",
    advice="call {scaler}.update() once after the last {scaler}.step() of an iteration{also}",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED, EventKind.UNSCALE}),
    breaks=_breaks,
    tells=_tells,
    after_step=True,
)
