"""ZG101 stale-gradient: a step uses gradients that an earlier step already used."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import NEXT_CALL, NEXT_ROUND, Finding
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState, Phase
from zerograd.rules.trails import tell_growth

NOTHING_CLEARS = "nothing clears"
USED = f"steps; {NOTHING_CLEARS} the gradients it used"
_AGAIN = "steps on both"


def _breaks(before: BucketState, event: Event) -> bool:
    return not event.leaf and before.phase(event.owner) is Phase.STALE


def _tells(before: BucketState, event: Event) -> Story:
    return tell_growth(before, event, used=USED, grew="adds onto them", again=_AGAIN)


def told_where_cleared(findings: list[Finding]) -> list[Finding]:
    """Return the findings with the trails of those of the same fault that know of a clear.

    A clear in a caller's file is seen from there alone.
    """
    unaware = {each.key for each in findings if _knows_of_none(each)}
    known = {
        each.key: each.trail
        for each in reversed(findings)
        if each.key in unaware and each.trail and not _knows_of_none(each)
    }
    if not known:
        return findings  # nearly always
    return [
        replace(each, trail=known.get(each.key, each.trail)) if _knows_of_none(each) else each
        for each in findings
    ]


def _knows_of_none(finding: Finding) -> bool:
    return finding.rule.code == RULE.code and any(
        each.text.endswith(USED) for each in finding.trail
    )


def by_hand(finding: Finding) -> Finding:
    """Return the finding in the words for weights that are updated without an optimizer."""
    owner = finding.owner.removesuffix(".data")  # which has no gradient of its own
    if finding.rule.code != RULE.code:
        step, update = f"{finding.owner}.step()", f"the update of {owner}"
        message, advice = (each.replace(step, update) for each in (finding.message, finding.advice))
        return replace(finding, message=message, advice=advice)
    told = {USED: f"updates; {NOTHING_CLEARS} the gradients it used", _AGAIN: "updates with both"}
    return replace(
        finding,
        message=f"the update of {owner} uses gradients that an earlier update already used",
        advice=f"clear {owner}.grad after each update",
        trail=tuple(each.told(told) for each in finding.trail),
    )


def shared(finding: Finding, holder: str) -> Finding:
    """Return the finding in the words for gradients that an optimizer was given by another network.

    Args:
        holder: the optimizer, which holds other parameters.
    """
    if finding.rule.code != RULE.code:
        return by_hand(finding)
    owner = finding.owner
    return replace(
        finding,
        message=f"{holder}.step() uses gradients that it shares with {owner} "
        "and that an earlier step already used",
        advice=f"clear {owner}.grad between one {holder}.step() and the next backward()",
    )


def in_closure(finding: Finding) -> Finding:
    """Return the finding in the words for a step that calls its closure several times."""
    owner = finding.owner
    trail = [replace(each, text=each.text.replace(NEXT_ROUND, NEXT_CALL)) for each in finding.trail]
    return replace(
        finding,
        message=f"{owner}.step() calls its closure several times, "
        "and each call adds onto the gradients of the one before",
        advice=f"call {owner}.zero_grad() first thing in the closure",
        trail=tuple(trail),
    )


RULE = Rule(
    code="ZG101",
    name="stale-gradient",
    summary="{owner}.step() uses gradients that an earlier step already used",
    advice="call {owner}.zero_grad() between one step and the next backward()",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED}),
    breaks=_breaks,
    tells=_tells,
    after_step=True,
)
