"""Closures that an optimizer calls several times in one step."""

from __future__ import annotations

from zerograd.static.engine.identity.ir import Happening


def repeats(step: Happening) -> bool:
    """Is it the step of an optimizer that calls its closure again and again by itself?"""
    loop = step.loop
    own = loop is not None and loop.node is None and not loop.pseudo
    return own and step.optimizer is not None and step.optimizer.repeats
