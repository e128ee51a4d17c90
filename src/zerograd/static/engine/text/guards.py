"""A window's guard, tried out: at which iterations does it let the step through?

A guard that is never true, always true or one iteration off is told by running it over a
few windows of a few sizes, however it is spelled: `(i + 1) % n == 0`, `i % n == n - 1`,
`not (i + 1) % n`. Where it speaks of anything but the counter and the size, nothing is told.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from zerograd.static.engine.text.parts import parts_below

SIZES = (3, 4, 7)  # tried where the size is no number; 2 would not tell a window from its opposite

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


Table = dict[int, list[bool]]  # size of a window: truth at each iteration


class Unknown(Exception):
    """The guard holds something whose value is not known."""


def truths(test: ast.expr, counter: ast.expr, size: ast.expr, windows: int, start: int) -> Table:
    """Return, for each size, the guard's truth at every iteration of so many windows."""
    guard = _Guard(test, counter, size)
    try:
        return {
            each: [guard.truth(index, each) for index in range(start, start + windows * each)]
            for each in guard.sizes(SIZES)
        }
    except (Unknown, ZeroDivisionError):
        return {}


def truth_at(test: ast.expr, counter: ast.expr, size: ast.expr, index: int) -> bool | None:
    """Return the guard's truth at one iteration, if it is the same for windows of all sizes."""
    guard = _Guard(test, counter, size)
    try:
        found = {guard.truth(index, each) for each in guard.sizes((1, 2, *SIZES))}
    except (Unknown, ZeroDivisionError):
        return None
    return found.pop() if len(found) == 1 else None


class _Guard:
    """A test, with the places in it where its counter and its size stand."""

    def __init__(self, test: ast.expr, counter: ast.expr, size: ast.expr) -> None:
        self._test = test
        self._number = size.value if isinstance(size, ast.Constant) else None
        spelled = {each: ast.dump(each) for each in parts_below(test)}
        counted, sized = ast.dump(counter), ast.dump(size)
        self._counters = [each for each, text in spelled.items() if text == counted]
        self._sizes = [each for each, text in spelled.items() if text == sized]

    def sizes(self, tried: tuple[int, ...]) -> tuple[int, ...]:
        """Return the size that is written, or those to try where it has a name."""
        number = self._number
        return (number,) if isinstance(number, int) and number > 0 else tried

    def truth(self, index: int, size: int) -> bool:
        values: dict[ast.AST, int] = {}
        if self._number is None:
            values.update(dict.fromkeys(self._sizes, size))
        values.update(dict.fromkeys(self._counters, index))
        return bool(value_of(self._test, values))


def is_never(table: Table) -> bool:
    return bool(table) and not any(any(column) for column in table.values())


def is_always(table: Table) -> bool:
    """True at each iteration, although a window holds several."""
    return bool(table) and all(all(column) and size > 1 for size, column in table.items())


def is_opposite(table: Table) -> bool:
    """True at all iterations of a window but one."""
    return bool(table) and all(
        size > 2 and _once_in(size, [not each for each in column]) for size, column in table.items()
    )


def left_out(table: Table) -> str:
    """Return in a word which micro-batch of a window an opposite guard is false at.

    >>> left_out({3: [False, True, True] * 2, 4: [False, True, True, True] * 2})
    'the first'
    """
    places = {(column.index(False), size) for size, column in table.items()}
    if all(place == 0 for place, _ in places):
        return "the first"
    return "the last" if all(place == size - 1 for place, size in places) else "one"


def is_one_early(table: Table) -> bool:
    """True once in each window, at the last micro-batch but one."""
    return bool(table) and all(
        size > 1 and column[size - 2] and _once_in(size, column) for size, column in table.items()
    )


def is_at_first(table: Table) -> bool:
    """True at the first micro-batch of each window."""
    return bool(table) and all(
        size > 1 and column[0] and _once_in(size, column) for size, column in table.items()
    )


def _once_in(size: int, column: list[bool]) -> bool:
    """Is it true once in every `size` iterations?"""
    true = [index for index, each in enumerate(column) if each]
    return bool(true) and true == list(range(true[0], len(column), size)) and true[0] < size


def value_of(node: ast.expr, values: dict[ast.AST, int]) -> Any:
    """Return what an expression comes to where these of its parts have these values."""
    known = values.get(node)
    if known is not None:
        return known
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return _ARITHMETIC[type(node.op)](value_of(node.left, values), value_of(node.right, values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not value_of(node.operand, values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value_of(node.operand, values)
    if isinstance(node, ast.Compare):
        left = value_of(node.left, values)
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            right = value_of(right_node, values)
            if type(kind) not in _COMPARISONS:
                raise Unknown
            if not _COMPARISONS[type(kind)](left, right):
                return False
            left = right
        return True
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("int", "bool") and node.args:
        return value_of(node.args[0], values)
    raise Unknown
