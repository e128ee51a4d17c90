"""Loops that are written as expressions: `[train(x) for x in data]`, `list(map(train, data))`."""

from __future__ import annotations

import ast

from zerograd.static.engine.frame import path_of

_USING_UP = frozenset(("list", "tuple", "set", "deque", "collections.deque", "any", "all"))
_EACH = "each item"  # no name that a program could have


def as_rounds(node: ast.Expr) -> ast.For | None:
    """Return the loop that a statement is; None for others, and where a condition picks rounds."""
    value = node.value
    if type(value) is ast.Call and type(value.func) is ast.Attribute and value.func.attr != "deque":
        return None  # most statements that are expressions
    if isinstance(value, ast.Call) and path_of(value.func) in _USING_UP and value.args:
        value = value.args[0]
        if isinstance(value, ast.Call) and path_of(value.func) == "map" and len(value.args) == 2:
            return _mapped(node, value)
    elif not isinstance(value, ast.ListComp | ast.SetComp):
        return None
    if not isinstance(value, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return None
    if not isinstance(value.elt, ast.Call) or len(value.generators) > 1:
        return None
    made = value.generators[0]
    if made.ifs or made.is_async:
        return None
    return _loop(node, made.target, made.iter, value.elt)


def _mapped(node: ast.Expr, call: ast.Call) -> ast.For:
    function, source = call.args
    target = ast.copy_location(ast.Name(_EACH, ast.Store()), source)
    given = ast.copy_location(ast.Name(_EACH, ast.Load()), source)
    return _loop(node, target, source, ast.copy_location(ast.Call(function, [given], []), call))


def _loop(node: ast.Expr, target: ast.expr, source: ast.expr, call: ast.expr) -> ast.For:
    body = ast.copy_location(ast.Expr(call), call)
    return ast.copy_location(ast.For(target, source, [body], []), node)
