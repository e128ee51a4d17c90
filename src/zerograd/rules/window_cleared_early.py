"""ZG501 window-cleared-early: cleared at every micro-batch while the step comes every K.

Or once a window, at the wrong place.
"""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Over, Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState
from zerograd.lifecycle.window import Window

CLEARED_LAST = (
    "{owner} is cleared just before the last backward() of a window, so its step uses that one only"
)
_CLEARED_AMIDST = (
    "{owner} is cleared in the midst of a window, so its step uses what the backward() calls "
    "after that fill only"
)
CLEAR_AFTER = "call {owner}.zero_grad() right after {owner}.step() instead"


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


def once(finding: Finding, window: Window) -> Finding:
    """Return the finding in words of its own if the window is cleared once, and not each time."""
    clears = dict(window.clears)
    if all(count <= clears.get(spot, count) for spot, count in window.lost):
        return finding
    summary = CLEARED_LAST if window.size == 1 else _CLEARED_AMIDST
    return replace(
        finding,
        message=summary.format(owner=finding.owner),
        advice=CLEAR_AFTER.format(owner=finding.owner),
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
