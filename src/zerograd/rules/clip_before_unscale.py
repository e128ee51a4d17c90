"""ZG301 clip-before-unscale: clipping gradients that still carry the scaler's factor."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.rule import Rule, RuleKind, Severity, Story, Witness
from zerograd.lifecycle.state import BucketState


def _breaks(before: BucketState, event: Event) -> bool:
    return bool(before.scaled) and bool(before.contributions)


def _tells(before: BucketState, event: Event) -> Story:
    scaled = before.contributions[-1] if before.contributions else None
    return Story(
        event.spot,
        (
            (scaled.spot if scaled else None, "fills the gradients, multiplied by the scale"),
            (event.spot, "clips them with the scale still in"),
        ),
        (("scaler", before.scaled or "scaler"),),
    )


def moved(finding: Finding, unscale: str) -> Finding:
    """Return the finding in the words for an `unscale` after the clip: a second one would raise."""
    return replace(finding, advice=f"move {unscale} before the clip")


RULE = Rule(
    code="ZG301",
    name="clip-before-unscale",
    summary="gradients are clipped while they still carry the scaler's factor",
    advice="call {scaler}.unscale_({owner}) before the clip",
    severity=Severity.ERROR,
    seen_by=Witness.STATIC | Witness.RUNTIME,
    kind=RuleKind.TRANSITION,
    on=frozenset({EventKind.CLIP}),
    breaks=_breaks,
    tells=_tells,
    once_seen=True,
)
