"""What a test counts: the remainder of a counter, or a number that the loop sets back itself."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Loop
from zerograd.static.engine.text.remainders import is_one
from zerograd.static.engine.text.stores import statements_in

if TYPE_CHECKING:
    from zerograd.static.engine.identity.atoms import Atom


class Counted(NamedTuple):
    """What a test asks of a number that is counted, and how long a window is."""

    asked: ast.expr  # the remainder, or the tally itself
    left: ast.expr  # what is counted
    size: ast.expr
    by_hand: bool  # the loop sets it back itself


def counted_in(atom: Atom, loop: Loop) -> Counted | None:
    """Return what an atom counts, if it ends windows."""
    assert atom.node is not None
    for each in ast.walk(atom.node):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod):
            return None if is_one(each.right) else Counted(each, each.left, each.right, False)
    tally = _tally(atom, loop)
    return None if tally is None else Counted(tally[0], *tally, True)


def _tally(atom: Atom, loop: Loop) -> tuple[ast.expr, ast.expr] | None:
    """Return the number that is asked for and that its loop counts, and how far it counts."""
    test = atom.node
    if not atom.tallied or not isinstance(loop.node, ast.For | ast.While):
        return None
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
    body = _body(atom, loop)
    counted = next((each for each in sides if each is not None and _is_counted(each, body)), None)
    if counted is None:
        return None
    others = [each for each in sides if each is not counted and each is not None]
    if others and not isinstance(others[0], ast.Constant):
        return counted, others[0]
    limit = others[0].value if others and isinstance(others[0], ast.Constant) else 0
    if isinstance(limit, int) and limit > 1:
        return counted, others[0]
    size = _set_up_to(counted, body)
    return None if size is None else (counted, size)


def _body(atom: Atom, loop: Loop) -> list[ast.AST]:
    """Return all statements of the loop, or of the function that it calls to ask this."""
    test, node = atom.node, loop.node
    assert test is not None and node is not None
    inside = loop.unit is None or atom.unit is None or loop.unit is atom.unit
    if inside and node.lineno <= test.lineno <= (node.end_lineno or 0):  # type: ignore[attr-defined]
        return statements_in([node])
    around = atom.unit.functions_around(test.lineno)[-1:] if atom.unit is not None else []
    return statements_in(around)


def _is_counted(side: ast.expr, body: list[ast.AST]) -> bool:
    """Is it counted there, or is it the length of a list that is filled there?"""
    if isinstance(side, ast.Call):
        filled = path_of(side.args[0]) if len(side.args) == 1 else ""
        calls = [each.value for each in body if isinstance(each, ast.Expr)]
        return bool(filled) and any(
            isinstance(each, ast.Call) and path_of(each.func) == f"{filled}.append"
            for each in calls
        )
    name = path_of(side)
    return bool(name) and any(_counts(each, name) for each in body)


def _counts(statement: ast.AST, name: str) -> bool:
    """Is it `n += 1`, or `n = n + 1`?"""
    if isinstance(statement, ast.AugAssign):
        return path_of(statement.target) == name
    value = statement.value if isinstance(statement, ast.Assign) else None
    return (
        isinstance(statement, ast.Assign)
        and isinstance(value, ast.BinOp)
        and path_of(value.left) == name
        and path_of(statement.targets[0]) == name
    )


def _set_up_to(counted: ast.expr, body: list[ast.AST]) -> ast.expr | None:
    """Return what a tally that is counted down is set to when a window ends."""
    name = path_of(counted)
    given = [
        each.value
        for each in body
        if isinstance(each, ast.Assign)
        and name in map(path_of, each.targets)
        and not _counts(each, name)
    ]
    zero = len(given) == 1 and isinstance(given[0], ast.Constant) and not given[0].value
    return given[0] if len(given) == 1 and not zero else None
