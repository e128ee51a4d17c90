"""Optimizers that are handed the gradients, as Keras' are: they clear nothing, and cannot."""

from __future__ import annotations

import ast
from dataclasses import replace

from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.identity.ir import Happening

APPLIES = frozenset(("apply", "apply_gradients"))


def is_applied(step: Happening) -> bool:
    """Is it `optimizer.apply(gradients, weights)`?"""
    call = step.node
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in APPLIES
    )


def told_of_applied(finding: Finding, step: Happening) -> Finding:
    """Put a stale gradient of such an optimizer into words of its own.

    The network clears; so that is what the finding is about.
    """
    assert isinstance(step.node, ast.Call) and isinstance(step.node.func, ast.Attribute)
    assert step.event is not None
    network = step.event.buckets[0]
    if not network.replace(".", "").isidentifier():  # nobody saw what it was made from
        network = "self" if finding.owner.startswith("self.") else "model"
    return replace(
        finding,
        owner=network,
        message=f"{finding.owner}.{step.node.func.attr}() uses gradients "
        "that an earlier step already used",
        advice=f"call {network}.zero_grad() between one step and the next backward()",
    )
