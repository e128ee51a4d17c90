"""Tallies of rounds that are full in each of them: windows of one, written out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.frame import path_of

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame


def is_full_each_turn(frame: Frame, test: ast.Compare) -> bool:
    """Is it `if n == 1: …; n = 0`, where each round begins with `n += 1`?"""
    loop = frame.loop.node if frame.loop is not None else None
    name = path_of(test.left)
    if not name or not isinstance(test.ops[0], ast.Eq | ast.GtE) or not _is(test.comparators[0], 1):
        return False
    counted = False
    for each in getattr(loop, "body", ()):
        if isinstance(each, ast.AugAssign) and path_of(each.target) == name:
            if counted or not isinstance(each.op, ast.Add) or not _is(each.value, 1):
                return False
            counted = True
        elif isinstance(each, ast.If) and each.test.lineno == test.lineno:
            emptied = any(_stores(one, name) for one in each.body)
            return counted and emptied and _begins_at_zero(frame, name)
    return False


def _begins_at_zero(frame: Frame, name: str) -> bool:
    """Is nothing but zero assigned to it in the file, and is it counted at one place?"""
    counts = 0
    for each in frame.unit.statements():
        if isinstance(each, ast.AugAssign) and path_of(each.target) == name:
            counts += 1
        elif isinstance(each, ast.Assign) and _stores(each, name) and not _is(each.value, 0):
            return False
    return counts == 1


def _stores(statement: ast.AST, name: str) -> bool:
    return isinstance(statement, ast.Assign) and any(
        path_of(each) == name for each in statement.targets
    )


def _is(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number
