"""Loops that are written as expressions: `[train(x) for x in data]`, `list(map(train, data))`."""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from zerograd.static.engine.identity.frame import path_of

_USING_UP = frozenset(("list", "tuple", "set", "deque", "collections.deque", "any", "all"))
_ROUNDS = frozenset[type]((ast.ListComp, ast.SetComp, ast.GeneratorExp))
_EACH = "each item"  # no name that a program could have

Statement = TypeVar("Statement", ast.Expr, ast.Assign, ast.AugAssign, ast.Return)


def as_rounds(node: ast.Expr) -> ast.For | None:
    """Return the loop that a statement is; None for others, and where a condition picks rounds."""
    value = node.value
    if type(value) is ast.Call and type(value.func) is ast.Attribute and value.func.attr != "deque":
        return None  # most statements that are expressions
    if isinstance(value, ast.Call) and path_of(value.func) in _USING_UP and value.args:
        value = value.args[0]
        if isinstance(value, ast.Call) and path_of(value.func) == "map" and len(value.args) == 2:
            return _mapped(node, value)
    elif not isinstance(value, (ast.ListComp, ast.SetComp)):
        return None
    if not isinstance(value, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return None
    if not isinstance(value.elt, ast.Call) or len(value.generators) > 1:
        return None
    made = value.generators[0]
    if made.ifs or made.is_async:
        return None
    return _loop(node, made.target, made.iter, value.elt)


def rounds_inside(value: ast.expr | None) -> ast.ListComp | ast.SetComp | ast.GeneratorExp | None:
    """Return the rounds that an expression makes a list or a sum of: `sum(f(x) for x in data)`."""
    found = value
    while True:
        if type(found) is ast.Call:
            if not found.args:
                return None
            found = found.args[0]
        elif type(found) is ast.BinOp:
            found = found.left  # sum(…) / len(data)
        else:
            break
    if type(found) not in _ROUNDS:
        return None  # most expressions
    assert isinstance(found, ast.ListComp | ast.SetComp | ast.GeneratorExp)
    if found is value and isinstance(found, ast.GeneratorExp):
        return None  # who asks for the items, and when, is not told
    made = found.generators[0]
    if len(found.generators) > 1 or made.ifs or made.is_async:
        return None
    return found if isinstance(found.elt, ast.Call) else None


def taken_out(
    node: Statement, rounds: ast.ListComp | ast.SetComp | ast.GeneratorExp
) -> tuple[ast.For, Statement]:
    """Return the loop that the rounds are, and the statement without them."""
    made = rounds.generators[0]
    assert node.value is not None
    rest = copy.copy(node)
    rest.value = _without(node.value, rounds)
    return _loop(node, made.target, made.iter, rounds.elt), rest


def _without(value: ast.expr, rounds: ast.expr) -> ast.expr:
    if value is rounds:
        return ast.copy_location(ast.Name(_EACH, ast.Load()), rounds)
    rest = copy.copy(value)
    if isinstance(rest, ast.BinOp):
        rest.left = _without(rest.left, rounds)
    elif isinstance(rest, ast.Call):
        rest.args = [_without(rest.args[0], rounds), *rest.args[1:]]
    return rest


def _mapped(node: ast.Expr, call: ast.Call) -> ast.For:
    function, source = call.args
    target = ast.copy_location(ast.Name(_EACH, ast.Store()), source)
    given = ast.copy_location(ast.Name(_EACH, ast.Load()), source)
    return _loop(node, target, source, ast.copy_location(ast.Call(function, [given], []), call))


def _loop(node: ast.stmt, target: ast.expr, source: ast.expr, call: ast.expr) -> ast.For:
    body = ast.copy_location(ast.Expr(call), call)
    return ast.copy_location(ast.For(target, source, [body], []), node)
