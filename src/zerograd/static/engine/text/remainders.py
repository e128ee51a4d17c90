"""Tests of a remainder, and comparisons told from their opposites."""

from __future__ import annotations

import ast

OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
    ast.NotIn: ast.In,
}


def is_positive(node: ast.expr) -> bool:
    """Is the atom made of this test true where the test is true?"""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        kind, right = type(node.ops[0]), node.comparators[0]
        zero = isinstance(right, ast.Constant) and right.value == 0
        return not (kind in OPPOSITE or (kind is ast.Gt and zero and is_modulo(node.left)))
    return not is_modulo(node)


def is_modulo(node: ast.AST) -> bool:
    return type(node) is ast.BinOp and type(node.op) is ast.Mod


def is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def asks_for(test: ast.expr, remainder: int) -> bool:
    """Is it `… == remainder`?"""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == remainder
    )
