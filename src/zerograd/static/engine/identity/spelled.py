"""What a function answers with, in its caller's words: `(i + 1) % self.n == 0` of `self.is_due(i)`.

A window whose end a method tells is then seen as one whose end is written where it is asked for.
"""

from __future__ import annotations

import ast
from copy import deepcopy
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.identity.definitions import Function
    from zerograd.static.engine.identity.unit import Unit


def spelled_out(unit: Unit, call: ast.Call, function: Function) -> ast.expr | None:
    """Return the one expression that a function of this file returns, with what it is handed.

    It is computed from that, and from attributes of the same object: nothing else could differ.
    """
    node = function.node
    if function.unit is not unit or isinstance(node, ast.Lambda) or node.decorator_list:
        return None
    answer = _answer(node.body)
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    own: set[str] = set()
    if isinstance(call.func, ast.Attribute):
        if path_of(call.func.value) != "self" or names[:1] != ["self"]:
            return None
        names, own = names[1:], {"self"}
    handed = dict(zip(names, call.args, strict=False))
    handed.update({each.arg: each.value for each in call.keywords if each.arg})
    if answer is None or len(call.args) > len(names) or handed.keys() != set(names):
        return None
    parts = parts_below(answer)
    if any(isinstance(each, ast.Call | ast.Lambda | ast.NamedExpr) for each in parts):
        return None
    if not {each.id for each in parts if isinstance(each, ast.Name)} <= handed.keys() | own:
        return None
    if not all(isinstance(each, ast.Name | ast.Attribute) for each in handed.values()):
        return None
    return _Handed(handed).visit(deepcopy(answer))  # type: ignore[no-any-return]


def _answer(body: list[ast.stmt]) -> ast.expr | None:
    """Return what is returned at once, or by way of one name."""
    done = [
        each
        for each in body
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    last = done[-1] if done else None
    returned = last.value if isinstance(last, ast.Return) else None
    if len(done) == 1:
        return returned
    first = done[0] if len(done) == 2 else None
    if not isinstance(first, ast.Assign) or not isinstance(returned, ast.Name):
        return None
    return first.value if [path_of(each) for each in first.targets] == [returned.id] else None


class _Handed(ast.NodeTransformer):
    """Puts what is handed in the place of the parameters."""

    def __init__(self, handed: dict[str, ast.expr]) -> None:
        self._handed = handed

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._handed.get(node.id, node)
