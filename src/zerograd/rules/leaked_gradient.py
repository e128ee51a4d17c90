"""ZG201 leaked-gradient: a step uses gradients that another optimizer's loss left behind."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState

_FILLS = "fills these gradients too, for another optimizer"
_STEPS = "steps that optimizer; what it left here is not cleared"


def _breaks(before: BucketState, event: Event) -> bool:
    return before.suspicion is not None


def _tells(before: BucketState, event: Event) -> Story:
    found = before.suspicion
    if found is None:
        return Story(event.spot)
    return Story(
        found.step,
        (
            (found.left.spot, _FILLS),
            (found.left.used_at, _STEPS),
            (found.own.spot, "adds onto what was left"),
            (found.step, "steps on both"),
        ),
        (("owner", found.owner),),
    )


def left_by_hand(finding: Finding, name: str) -> Finding:
    """No optimizer has left it, but code that updates `name` itself, as an attack does."""
    told = {
        _FILLS: f"fills these gradients too, for {name}",
        _STEPS: f"uses the gradient of {name}; what else was left is not cleared",
    }
    return replace(
        finding,
        message=f"{finding.owner}.step() also uses gradients that the loss for {name} left behind",
        trail=tuple(each.told(told) for each in finding.trail),
    )


def in_window(finding: Finding, backward: str) -> Finding:
    """Return the finding in the words for a step on several losses of its own.

    A clear before the last of them would throw the others away.
    """
    owner = finding.owner
    return replace(
        finding,
        advice=f"keep `{backward}` out of {owner}'s gradients: give that backward() inputs=, the "
        f"other optimizer's parameters; a clear would lose what {owner} has gathered",
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
