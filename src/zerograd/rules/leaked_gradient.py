"""ZG201 leaked-gradient: a step uses gradients that another optimizer's loss left behind."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState


def _breaks(before: BucketState, event: Event) -> bool:
    return before.suspicion is not None


def _tells(before: BucketState, event: Event) -> Story:
    found = before.suspicion
    if found is None:
        return Story(event.spot)
    return Story(
        found.step,
        (
            (found.left.spot, "fills them for another optimizer"),
            (found.left.used_at, "steps that optimizer; what it left here is not cleared"),
            (found.own.spot, "adds onto what was left"),
            (found.step, "steps on both"),
        ),
        (("owner", found.owner),),
    )


RULE = Rule(
    code="ZG201",
    name="leaked-gradient",
    summary="{owner}.step() also uses gradients that another optimizer's loss left behind",
    advice="call {owner}.zero_grad() before the backward() that {owner} is to step on",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    # Until the next backward, another optimizer that the same loss fills may still step on it.
    on=frozenset({EventKind.BACKWARD}),
    breaks=_breaks,
    tells=_tells,
    after_step=True,
)
