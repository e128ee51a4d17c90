"""ZG302 missing-scaler-update: `scaler.step` or `unscale_` without `scaler.update` on that path."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState, Phase

TOO_LATE = "{scaler}.unscale_({owner}) comes between {scaler}.step({owner}) and {scaler}.update()"
# An unscale without a step: in the middle of a window it is too many, at a bad batch it is not.
IF_UNSCALED = (
    "call {scaler}.unscale_({owner}) only where {scaler}.step({owner}) follows, "
    "or {scaler}.update() also where the step is skipped"
)
IN_WINDOW = (
    "{scaler}.unscale_({owner}) is called at every micro-batch, "
    "{scaler}.update() only at the end of a window"
)


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
    is_unscale = event.kind is EventKind.UNSCALE
    call = "unscale_" if is_unscale else "step"
    names = (("scaler", event.scaler or "scaler"), ("call", call))
    if is_unscale and _is_too_late(before, event):
        return Story(event.spot, (), names, TOO_LATE)
    return Story(event.spot, (), names, advice=IF_UNSCALED if is_unscale else "")


def where_skipped(finding: Finding, scaler: str) -> Finding:
    """Return the finding in the words for an update that a condition skips after the unscale."""
    unscale = f"{scaler}.unscale_({finding.owner})"
    return replace(
        finding,
        message=f"{unscale} is not followed by {scaler}.update() where the step is skipped",
        advice=f"call {scaler}.update() also where the step is skipped",
    )


def in_window(finding: Finding, scaler: str, *, clips: bool) -> Finding:
    """Return the finding in the words for an unscale before the last micro-batch of a window.

    An update there would change the scale between the losses of one step.
    """
    names = {"scaler": scaler, "owner": finding.owner}
    moved = "{scaler}.unscale_({owner})" + (" and the clip" if clips else "")
    return replace(
        finding,
        message=IN_WINDOW.format_map(names),
        advice=f"move {moved} under the condition of {{scaler}}.step({{owner}})".format_map(names),
    )


RULE = Rule(
    code="ZG302",
    name="missing-scaler-update",
    summary="{scaler}.{call}({owner}) is not followed by {scaler}.update()",
    advice="call {scaler}.update() once after the last {scaler}.step() of an iteration",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.STEP, EventKind.STEP_SKIPPED, EventKind.UNSCALE}),
    breaks=_breaks,
    tells=_tells,
    after_step=True,
)
