"""What is written between a clear and the step after it: a backward may hide there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.acting import acts
from zerograd.static.engine.identity.frame import path_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.identity.ir import Happening
    from zerograd.static.engine.identity.unit import Unit


def is_trained_between(step: Happening, buckets: Buckets) -> bool:
    """Is something that by its name trains called for its own sake between its clear and a step?

    `for option in self.options: option.train_on(states)`: what the step is for is filled there.
    """
    assert step.event is not None
    mine = set(step.event.buckets)
    order = buckets.happenings
    clears = [
        each.spot.line
        for each in order[: order.index(step)]
        if each.kind is EventKind.CLEAR
        and each.event is not None
        and not mine.isdisjoint(each.event.buckets)
        and each.unit is step.unit
        and each.frames == step.frames
    ]
    if not clears or clears[-1] >= step.spot.line:
        return False
    return any(
        isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and clears[-1] < each.lineno < step.spot.line
        and _trains_unseen(each.value.func, step.unit)
        for each in step.unit.statements()
    )


def _trains_unseen(called: ast.expr, unit: Unit) -> bool:
    """Does it train by its name, and is neither a plain backward nor read where it is called?"""
    if isinstance(called, ast.Attribute):
        name, followed = called.attr, path_of(called.value) == "self"
    else:
        name, followed = path_of(called), True
    if name == "backward" or (followed and unit.functions_saying(f"def {name}(")):
        return False
    return acts(f"{name}(", unit)
