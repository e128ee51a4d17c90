"""Tallies: numbers that loops count by hand and set back, and lists they fill and empty."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.stores import statements_in

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

_EQUAL = (ast.Eq, ast.NotEq)
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def is_tallied(frame: Frame, test: ast.expr) -> bool:
    """Is a number asked for that the file counts, and sets back to where it began?

    So is the length of a list that is gathered and emptied.
    """
    if isinstance(test, ast.Name | ast.Attribute):
        name = _name_of(test)
        down = (
            frame.unit.tallied.is_counted_down(name) and frame.unit.tallied.is_tallied(name) is None
        )
        return down and _is_set_again(frame, test)  # `if not left: …; left = 4`
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], _EQUAL + _ORDERED):
        return False
    if _is_since_the_last(frame, test):
        return True
    for side in (test.left, *test.comparators):
        if isinstance(side, ast.Call) and _name_of(side.func) == "len" and len(side.args) == 1:
            if frame.unit.tallied.is_gathered(_name_of(side.args[0])):
                return True  # of the losses of a window, say
            continue
        name = _name_of(side)
        known = frame.unit.tallied.is_tallied(name) if name else None
        if known is None and name.endswith("]"):
            known = frame.unit.tallied.is_tallied(name.replace('"', "'"))
        if known is not None:
            return _is_set_back(frame, side, equal=isinstance(test.ops[0], _EQUAL), to_zero=known)
        if name and frame.unit.tallied.is_counted_down(name):
            return _is_set_again(frame, side)  # counted down, and set up again in the same loop
    return False


def _is_set_back(frame: Frame, side: ast.expr, *, equal: bool, to_zero: bool) -> bool:
    """Does what is counted up begin again, in a later round than the one that counts it?"""
    loop = frame.loop.node if frame.loop is not None else None
    if not to_zero:
        return loop is not None and _assigns([loop], _name_of(side), to=1)
    if equal:
        return True
    # More than so many, for good: training begins, or has lasted long enough. And what each
    # round begins anew is no count of rounds.
    before = [each for each in getattr(loop, "body", ()) if each.lineno < side.lineno]
    anew = [each for each in before if isinstance(each, ast.Assign)]
    if isinstance(side, ast.Name) and _assigns(anew, side.id):
        return False
    return _is_set_again(frame, side, unknown=True)


def _is_set_again(frame: Frame, side: ast.expr, *, unknown: bool = False) -> bool:
    """Is it given another value in the same loop, or an attribute by some other method?

    Where the loop stands in another function, who sets it back there is `unknown`.
    """
    name = _name_of(side)
    if isinstance(side, ast.Attribute):
        methods = frame.unit.functions_saying(f".{name}")
        if any(_assigns(each.body, name) for each in methods if each.name != "__init__"):
            return True
    loop = frame.loop.node if frame.loop is not None else None
    return unknown if loop is None else _assigns([loop], name)


def _assigns(body: Sequence[ast.AST], name: str, to: int | None = None) -> bool:
    """Is a value given to the name, or this number?"""
    return any(
        isinstance(each, ast.Assign)
        and name in [_name_of(target) for target in _flat(each.targets)]
        and (to is None or _is(each.value, to))
        for each in statements_in(body)
    )


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    return [
        one for each in targets for one in (each.elts if isinstance(each, ast.Tuple) else [each])
    ]


def _name_of(side: ast.expr) -> str:
    """Return the name that is counted: `n`, the `n` of `self.n`, or `state["n"]` as a whole."""
    if isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Constant):
        return ast.unparse(side).replace("'", '"')
    return side.id if isinstance(side, ast.Name) else getattr(side, "attr", "")


def _is_since_the_last(frame: Frame, test: ast.Compare) -> bool:
    """Is it `i - last >= k`, where the loop keeps in `last` the `i` of the last step?"""
    passed, loop = test.left, frame.loop.node if frame.loop is not None else None
    if not isinstance(passed, ast.BinOp) or not isinstance(passed.op, ast.Sub) or loop is None:
        return False
    now, last = path_of(passed.left), path_of(passed.right)
    return bool(now and last) and any(
        isinstance(each, ast.Assign)
        and path_of(each.value) == now
        and last in map(path_of, each.targets)
        for each in statements_in([loop])
    )


def is_full_each_turn(frame: Frame, test: ast.Compare) -> bool:
    """Is it `if n == 1: …; n = 0`, where each round begins with `n += 1`?"""
    loop = frame.loop.node if frame.loop is not None else None
    name = path_of(test.left)
    if (
        not name
        or not isinstance(test.ops[0], (ast.Eq, ast.GtE))
        or not _is(test.comparators[0], 1)
    ):
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
