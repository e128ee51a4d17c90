"""What holds a statement where it is: names that those around it give it, or have of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from zerograd.static.engine.text.parts import parts_below


def is_held(statement: ast.stmt, anchor: ast.stmt, around: Iterable[ast.AST]) -> bool:
    """Would it be moved past one that gives a name it uses, or uses one that it gives?

    >>> first, second, third = ast.parse("opt.step(); ps = net(); clip(ps)").body
    >>> is_held(third, first, [first, second, third])
    True
    >>> is_held(second, first, [first, second, third])
    False
    """
    start, end = sorted((_place(statement), _place(anchor)))
    own = set(map(id, parts_below(statement)))
    uses, gives = _names(statement, but_for=None)
    cleared = _cleared(statement)
    for each in around:
        if id(each) in own or not isinstance(each, ast.stmt) or not start <= _place(each) <= end:
            continue
        used, given = _names(each, but_for=each)
        given -= cleared & _moved_in_place(each)
        if not given.isdisjoint(uses | gives) or not gives.isdisjoint(used):
            return True
    return False


def _cleared(statement: ast.stmt) -> set[str]:
    """Return the names whose gradient a statement speaks of."""
    return {
        each.value.id
        for each in ast.walk(statement)
        if isinstance(each, ast.Attribute)
        and each.attr == "grad"
        and isinstance(each.value, ast.Name)
    }


def _moved_in_place(statement: ast.stmt) -> set[str]:
    """Return the names that `w -= …` alone assigns there: a tensor stays the same one."""
    moved = [each.target for each in ast.walk(statement) if isinstance(each, ast.AugAssign)]
    stored = [
        each.id
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    names = [each.id for each in moved if isinstance(each, ast.Name)]
    return {each for each in names if names.count(each) == stored.count(each)}


def _place(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def _names(statement: ast.stmt, but_for: ast.stmt | None) -> tuple[set[str], set[str]]:
    """Return the names that a statement uses, and those that it gives a value.

    What the loops in it go over by is their own; that of `but_for`, a loop, is for all behind it.
    """
    names = [each for each in parts_below(statement) if isinstance(each, ast.Name)]
    used = {each.id for each in names if isinstance(each.ctx, ast.Load)}
    given = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    own = {
        name.id
        for each in parts_below(statement)
        if isinstance(each, ast.comprehension | ast.For) and each is not but_for
        for name in parts_below(each.target)
        if isinstance(name, ast.Name)
    }
    return used - own, given - own
