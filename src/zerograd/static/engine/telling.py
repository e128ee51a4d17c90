"""Words for faults whose usual ones would lead astray."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.findings import Finding


def told_too_soon(finding: Finding) -> Finding:
    """A step that stands above its backward: the order of these two is the fault, not the clear."""
    owner = finding.owner
    return replace(
        finding,
        message=f"{owner}.step() comes before the backward() it is meant for, "
        "and what that fills is cleared, unused",
        advice=f"call {owner}.step() after backward()",
    )


def told_of_last_round(finding: Finding) -> Finding:
    """A loop that clears in each round, with the step behind it."""
    owner = finding.owner
    return replace(
        finding,
        message=f"{owner} is cleared in each round of this loop but stepped only after it, "
        "so the gradients of all rounds but the last are lost",
        advice=f"call {owner}.step() in the loop, or clear once before it to add its rounds up",
    )
