"""Closures that an optimizer calls several times in one step."""

from __future__ import annotations

from dataclasses import replace

from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.ir import Happening


def repeats(step: Happening) -> bool:
    """Is it the step of an optimizer that calls its closure again and again by itself?"""
    loop = step.loop
    own = loop is not None and loop.node is None and not loop.pseudo
    return own and step.optimizer is not None and step.optimizer.repeats


def told_of_closure(finding: Finding) -> Finding:
    """Put a stale gradient of such an optimizer into words of its own."""
    owner = finding.owner
    return replace(
        finding,
        message=f"{owner}.step() calls its closure several times, "
        "and each call adds onto the gradients of the one before",
        advice=f"call {owner}.zero_grad() first thing in the closure",
    )
