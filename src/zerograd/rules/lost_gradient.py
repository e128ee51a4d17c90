"""ZG102 lost-gradient: a clear between backward and step, so that the step sees nothing."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Over, Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState, Drop, Phase


def _breaks(before: BucketState, event: Event) -> bool:
    return (
        not event.leaf
        and before.phase(event.owner) is Phase.EMPTY
        and before.lost is not None
        and before.lost.finite
        and not before.lost.shared
    )


AFTER = "this backward() comes after {owner}.step(), and what it fills is cleared before the next"
BEFORE = "{owner} is cleared between a backward() and the step, so that loss is lost"

UNPLACED = "finds them cleared, and steps on nothing"


def _tells(before: BucketState, event: Event) -> Story:
    lost, step = before.lost, event.spot
    if lost is None:
        return Story(step)
    if before.contributions:
        return _tells_beside(lost)
    # Where the step stands above its backward, the order of these two is the fault, not the clear.
    # In a function of its own it stands where it stands.
    here = lost.backward.path == step.path and _is_in(event.scope, lost.backward.line)
    too_early = here and step.line < lost.backward.line
    return Story(
        step if too_early else lost.clear,
        (
            (lost.backward, "fills the gradients"),
            (lost.clear, "throws them away, unused"),
            (step, "steps on nothing"),
        ),
    )


def _tells_beside(lost: Drop) -> Story:
    """Tell of a loss that is thrown away in each round, beside one that the step uses."""
    is_after = lost.backward.path == lost.clear.path and lost.clear.line < lost.backward.line
    move = (
        "call this backward() before {owner}.step()" if is_after else "clear before that backward()"
    )
    return Story(
        lost.backward if is_after else lost.clear,
        (
            (lost.backward, "fills the gradients"),
            (lost.clear, "throws them away"),
        ),
        summary=AFTER if is_after else BEFORE,
        advice=f"{move}, or leave this loss out",
    )


def _is_in(scope: tuple[int, int] | None, line: int) -> bool:
    return scope is None or scope[0] <= line <= scope[1]


def is_unplaced(finding: Finding, step: Spot) -> bool:
    """Is the clear known by what it left alone, so that it was put where the step stands?"""
    return any(each.spot == step for each in finding.trail[1:-1])


def unplaced(finding: Finding) -> Finding:
    """A clear whose own line is not known: it stands somewhere between the other two."""
    filled, wiped, stepped = finding.trail  # the last two in one place
    return replace(finding, trail=(filled, replace(stepped, text=f"{wiped.turn}{UNPLACED}")))


def too_soon(finding: Finding) -> Finding:
    """A step that stands above its backward: the order of these two is the fault, not the clear."""
    owner = finding.owner
    return replace(
        finding,
        message=f"{owner}.step() comes before the backward() it is meant for, "
        "and what that fills is cleared, unused",
        advice=f"call {owner}.step() after backward()",
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
    once_seen=True,
    every_path=True,  # a guard that throws a bad batch away is right
    windowed=True,
)
