"""ZG401 step-without-gradient: a step with nothing filled since the last clear."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Over, Rule, RuleKind, Severity, Witness
from zerograd.lifecycle.state import BucketState, Phase


def _breaks(before: BucketState, event: Event) -> bool:
    if event.leaf or before.phase(event.owner) is not Phase.EMPTY:
        return False
    # A guard that throws a NaN away and steps all the same is right: the step does nothing.
    return before.lost is None or before.lost.finite


def filled_elsewhere(finding: Finding, filled: str) -> Finding:
    """A backward has come, and left nothing in what the optimizer holds.

    Args:
        filled: what it has filled, if that is known and no optimizer that is known holds it.
    """
    owner = finding.owner
    message = f"{owner}.step() finds no gradients: backward() left none in what {owner} holds"
    advice = f"call backward() on a loss that depends on what {owner} holds before {owner}.step()"
    if filled:
        message += f", but in {filled}"
        advice = (
            f"make {owner} of the parameters that the loss depends on; where a model is "
            "copied, converted or replaced, make the optimizer after that"
        )
    return replace(finding, message=message, advice=advice)


RULE = Rule(
    code="ZG401",
    name="step-without-gradient",
    summary="{owner}.step() finds no gradients: nothing was filled since the last clear",
    advice="call backward() before {owner}.step()",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    over=Over.ALL,
    once_seen=True,
    every_path=True,  # a guard that throws a bad batch away is right
    windowed=True,
)
