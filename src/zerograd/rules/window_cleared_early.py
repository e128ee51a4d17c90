"""ZG501 window-cleared-early: cleared at every micro-batch while the step comes every K."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Over, Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState


def _breaks(before: BucketState, event: Event) -> bool:
    return any(not each.used_by for each in before.contributions)


def _tells(before: BucketState, event: Event) -> Story:
    dropped = next((each for each in before.contributions if not each.used_by), None)
    return Story(
        event.spot,
        (
            (dropped.spot if dropped else None, "fills the gradients"),
            (event.spot, "throws them away before the window's step"),
        ),
    )


RULE = Rule(
    code="ZG501",
    name="window-cleared-early",
    summary="{owner} is cleared at every micro-batch but stepped only at the end of a window",
    advice="clear only after {owner}.step(), under the same condition",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.CLEAR}),
    breaks=_breaks,
    tells=_tells,
    over=Over.ALL,
    windowed=True,
)
