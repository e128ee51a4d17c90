"""ZG202 leaf-gradient-grows: the `.grad` of an input or latent grows and is used."""

from __future__ import annotations

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState, Phase
from zerograd.rules.trails import tell_growth


def _breaks(before: BucketState, event: Event) -> bool:
    return event.leaf and before.phase(event.owner) is Phase.STALE


def _tells(before: BucketState, event: Event) -> Story:
    return tell_growth(
        before,
        event,
        used="uses the gradient; nothing clears it",
        grew="adds onto it",
        again="uses the sum",
    )


RULE = Rule(
    code="ZG202",
    name="leaf-gradient-grows",
    summary="{owner}.grad holds the sum of all iterations so far, not this one's gradient",
    advice="clear {owner}.grad in each iteration, or use torch.autograd.grad",
    severity=Severity.WARNING,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    tells=_tells,
    after_step=True,
)
