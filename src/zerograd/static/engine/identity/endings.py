"""Statements after which the next one never runs."""

from __future__ import annotations

import ast

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.unit import Unit

_ENDS = frozenset(("sys.exit", "os._exit", "os.abort", "exit", "quit"))
_LAST = frozenset(path.rsplit(".", 1)[-1] for path in _ENDS)


def leaves(unit: Unit, body: list[ast.stmt]) -> bool:
    """Does the block never fall through?"""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break)) or (
        type(last) is ast.Expr and ends_program(unit, last.value)
    )


def ends_program(unit: Unit, node: ast.expr) -> bool:
    """Is it a call such as `sys.exit(1)`, under whatever name it was imported?"""
    if type(node) is not ast.Call:
        return False
    if type(node.func) is ast.Attribute and node.func.attr not in _LAST:
        return False
    path = path_of(node.func)
    name, _, rest = path.partition(".")
    if name in unit.functions:
        return False
    if name in unit.imports:
        module, _, inner = unit.imports[name]
        path = ".".join(part for part in (module, inner, rest) if part)
    return path in _ENDS


def is_empty(node: ast.AST) -> bool:
    """Is it a method that others are to write: `pass`, `...`, or NotImplementedError alone?"""
    body = getattr(node, "body", None)
    return isinstance(body, list) and all(map(_does_nothing, body))


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)  # a docstring, or `...`
    if isinstance(statement, ast.Raise):
        return statement.exc is not None and "NotImplemented" in ast.dump(statement.exc)
    return isinstance(statement, ast.Pass)
