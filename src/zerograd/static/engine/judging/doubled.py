"""ZG402: weights that are moved along their gradients by hand, and then by an optimizer as well.

    for p in net.parameters():
        p.data.add_(-lr, p.grad.data)
    opt.step()

Each is a whole update. Who climbs by hand, as SAM does, goes back again before the step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.conditions import RAISED
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.shown import code_of, name_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow

MESSAGE = "{owner}.step() uses gradients along which line {line} has moved the weights already"
ADVICE = "leave out the update by hand, or {owner}.step()"


def doubled(buckets: Buckets, flow: Flow, atoms: dict[str, int]) -> Iterator[Finding]:
    """Yield the steps of optimizers on what an update by hand has used in the same round."""
    by_hand = [each for each in buckets.happenings if _goes_down(each)]
    if not by_hand:
        return  # most roots
    raised = frozenset(number * 2 + 1 for key, number in atoms.items() if key.startswith(RAISED))
    for step in buckets.happenings:
        if step.kind is not EventKind.STEP or step.event is None or step.loop is None:
            continue
        if step.optimizer is None or step.optimizer.is_by_hand or step.optimizer.picked:
            continue
        for update in by_hand:
            if update.loop is step.loop and _is_used(update, step, flow, raised):
                yield _finding(update, step, buckets)
                break


def _goes_down(each: Happening) -> bool:
    """Is it an update by hand that takes a multiple of the gradient away from the weights?"""
    if each.kind is not EventKind.STEP or each.optimizer is None or not each.optimizer.is_by_hand:
        return False
    node = each.node
    if each.leaf or each.event is None or each.rescues:
        return False
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Sub)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    factors = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "alpha")]
    negative = any(
        isinstance(part, ast.UnaryOp | ast.BinOp) and _is_minus(part) for part in factors
    )
    return name == "sub_" or (name == "add_" and negative)


def _is_minus(node: ast.expr) -> bool:
    """Is it `-lr`, or a product that begins so?"""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        node = node.left
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _is_used(update: Happening, step: Happening, flow: Flow, raised: frozenset[int]) -> bool:
    """Has the update used all that the step finds, whichever way it comes there?"""
    assert step.event is not None and update.optimizer is not None
    reached = flow.reached.get(id(step), {})
    for bucket in step.event.buckets:
        states = [
            flow.states[number][0]
            for number, literals in reached.get(bucket, ())
            if raised.isdisjoint(literals)
        ]
        if not states or not all(
            state.contributions
            and not state.unknown
            and all(
                update.optimizer.key in each.used_by and step.event.owner not in each.used_by
                for each in state.contributions
            )
            for state in states
        ):
            return False
    return bool(step.event.buckets)


def _finding(update: Happening, step: Happening, buckets: Buckets) -> Finding:
    names = {"owner": name_of(step), "line": str(update.spot.line)}
    before = buckets.happenings[: buckets.happenings.index(update)]
    losses = [each for each in before if each.kind is EventKind.BACKWARD]
    stations = [(each, "fills the gradients") for each in losses[-1:]]
    stations += [(update, "moves the weights along them"), (step, "moves them again")]
    return Finding(
        rule=BY_CODE["ZG402"],
        spot=step.spot,
        message=MESSAGE.format_map(names),
        advice=ADVICE.format_map(names),
        owner=names["owner"],
        trail=tuple(TrailStep(each.spot, text, code_of(each)) for each, text in stations),
    )
