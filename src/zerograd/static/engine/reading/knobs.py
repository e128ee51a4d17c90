"""Constants at the top of a script that switch a part of it off, for whoever reads on to turn."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.text.stores import statements_in

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame


def is_knob(frame: Frame, node: ast.If, kind: str) -> bool:
    """`PROFILE = False` at the top of a script: the training loop behind it is code as well."""
    dead = node.body if kind == "never" else node.orelse
    operand = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
    if isinstance(operand, ast.Compare) and any(
        isinstance(each, ast.Constant) and each.value is None for each in operand.comparators
    ):
        return False  # whether something was given is asked again at the step
    if isinstance(operand, ast.Compare) and (
        isinstance(operand.ops[0], ast.In | ast.NotIn) or isinstance(operand.left, ast.Call)
    ):
        return False  # what a thing is, or is in, is told by the thing
    return isinstance(operand, ast.Name | ast.Compare) and any(
        isinstance(each, ast.For | ast.While) and frame.unit.has_events(each)
        for each in statements_in(dead)
    )
