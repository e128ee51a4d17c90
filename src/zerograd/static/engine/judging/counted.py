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
    counted = next((each for each in sides if each is not None and _is_counted(each, loop)), None)
    if counted is None:
        return None
    others = [each for each in sides if each is not counted and each is not None]
    if others and not isinstance(others[0], ast.Constant):
        return counted, others[0]
    limit = others[0].value if others and isinstance(others[0], ast.Constant) else 0
    if isinstance(limit, int) and limit > 1:
        return counted, others[0]
    size = _set_up_to(counted, loop)
    return None if size is None else (counted, size)


def _is_counted(side: ast.expr, loop: Loop) -> bool:
    """Does the loop count it, or is it the length of a list that the loop fills?"""
    if isinstance(side, ast.Call):
        filled = path_of(side.args[0]) if len(side.args) == 1 else ""
        return bool(filled) and f"{filled}.append(" in loop.text
    name = path_of(side)
    return bool(name) and any(
        isinstance(each, ast.AugAssign) and path_of(each.target) == name
        for each in statements_in([loop.node] if loop.node is not None else [])
    )


def _set_up_to(counted: ast.expr, loop: Loop) -> ast.expr | None:
    """Return what a tally that is counted down is set to when a window ends."""
    name = path_of(counted)
    given = [
        each.value
        for each in statements_in([loop.node] if loop.node is not None else [])
        if isinstance(each, ast.Assign) and name in map(path_of, each.targets)
    ]
    zero = len(given) == 1 and isinstance(given[0], ast.Constant) and not given[0].value
    return given[0] if len(given) == 1 and not zero else None
