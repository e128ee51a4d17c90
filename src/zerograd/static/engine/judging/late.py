"""Losses that are there when the step that was meant for them is made, and go backward after it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.static.engine.identity.ir import Doubt, Happening
from zerograd.static.engine.text.stores import names_stored

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow


def comes_before_its_loss(step: Happening, buckets: Buckets, flow: Flow) -> bool:
    """Does a step that is made once find nothing, and its loss, which is there, go back after it?

    A step on nothing that is made for a scheduler's sake has no loss waiting. Here one was
    computed before the step, and nothing steps after it has gone back.
    """
    assert step.event is not None
    call = step.node
    if step.loop is not None or step.optimizer is None or step.optimizer.is_by_hand:
        return False
    if step.scaler or not isinstance(call, ast.Call) or call.args or call.keywords:
        return False
    mine = set(step.event.buckets)
    if not mine or not all(_is_empty(step, bucket, flow) for bucket in mine):
        return False
    order = buckets.happenings
    later = [
        each
        for each in order[order.index(step) + 1 :]
        if each.event is not None and not mine.isdisjoint(each.event.buckets)
    ]
    return (
        bool(later)
        and later[0].kind is EventKind.BACKWARD
        and later[0].loop is None
        and later[0].frames == step.frames
        and later[0].guards <= step.guards
        and not any(each.kind is EventKind.STEP for each in later)
        and _is_computed_before(later[0], step)
    )


def _is_empty(step: Happening, bucket: str, flow: Flow) -> bool:
    """Is there surely nothing in it, whichever way the step is reached?"""
    states = [flow.states[number] for number, _ in flow.reached[id(step)].get(bucket, ())]
    return bool(states) and all(
        not state.contributions and not state.unknown and doubt in (Doubt.NONE, Doubt.FORWARD)
        for state, doubt in states
    )


def is_waiting(loss: Spot, step: Happening, buckets: Buckets) -> bool:
    """Is what goes backward at this spot a loss that was computed before the step?"""
    return any(
        each.kind is EventKind.BACKWARD and each.spot == loss and _is_computed_before(each, step)
        for each in buckets.happenings
    )


def _is_computed_before(backward: Happening, step: Happening) -> bool:
    """Is the loss that goes back there already when the step is made?"""
    call, unit = backward.node, backward.unit
    if unit is not step.unit or not isinstance(call, ast.Call):
        return False
    loss = call.func.value if isinstance(call.func, ast.Attribute) else None
    parts = _made_of(loss)
    stored = [
        each.lineno
        for each in unit.statements()
        if isinstance(each, ast.Assign | ast.AugAssign | ast.AnnAssign)
        and each.lineno < backward.spot.line
        and not parts.isdisjoint(names_stored([each]))
    ]
    return bool(stored) and max(stored) < step.spot.line < backward.spot.line


def _made_of(loss: ast.expr | None) -> frozenset[str]:
    """Return the names that a loss is put together of: `(a + 2 * b)`, `scaler.scale(a)`.

    None where something is called to compute it: then it is not there before.
    """
    if isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute):
        scaled = loss.func.attr == "scale" and len(loss.args) == 1
        if loss.args and not scaled:
            return frozenset()
        return _made_of(loss.args[0] if scaled else loss.func.value)
    if isinstance(loss, ast.BinOp):
        sides = [each for each in (loss.left, loss.right) if not isinstance(each, ast.Constant)]
        found = [_made_of(each) for each in sides]
        return frozenset[str]().union(*found) if all(found) else frozenset()
    if isinstance(loss, ast.UnaryOp):
        return _made_of(loss.operand)
    if isinstance(loss, ast.Subscript):
        return _made_of(loss.value)
    if isinstance(loss, ast.Attribute):
        return frozenset((f".{loss.attr}",)) | _made_of(loss.value)
    return frozenset((loss.id,)) if isinstance(loss, ast.Name) else frozenset()
