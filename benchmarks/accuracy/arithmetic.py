"""Arithmetic of the brute-force interpreter: what it computes, and what it leaves unknown."""

from __future__ import annotations

import ast
import operator
from typing import Any

BINARY: dict[type[ast.AST], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
COMPARE: dict[type[ast.AST], Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
NUMBERS: dict[str, Any] = {"int": int, "max": max, "min": min, "abs": abs, "bool": bool}
LONGEST_VALUE = 4096  # characters or elements that a program may build
LARGEST_NUMBER = 1e30


def is_small(kind: type[ast.AST], left: Any, right: Any) -> bool:
    """Is the result of an operation on known values sure to fit into little memory?"""
    if kind is ast.Pow:
        return _size(left) < 1e6 and _size(right) < 64
    sizes = [len(each) for each in (left, right) if isinstance(each, str | list | tuple)]
    if kind is ast.Mult and sizes:
        return sum(sizes) * max(_size(left), _size(right)) <= LONGEST_VALUE
    if sizes:
        return sum(sizes) <= LONGEST_VALUE
    return _size(left) < LARGEST_NUMBER and _size(right) < LARGEST_NUMBER


def _size(value: Any) -> float:
    return abs(value) if isinstance(value, int | float) else 0.0


def key_of(value: Any) -> Any:
    """Return what tells two operands apart: plain values by value, others by identity."""
    if isinstance(value, bool | int | float | str | type(None)):
        return (type(value), value)
    return id(value)
