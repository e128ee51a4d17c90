"""Names that there is something under on one way of a condition only.

    if args.adapt:
        self.alpha_opt = Adam([alpha])

Who goes on with `self.alpha_opt` has taken that way: on the other one there is none, and Python
says so there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Way = tuple[str, bool]  # a condition in its last words, and how it was answered

_OTHERWISE = (ast.NotEq, ast.IsNot, ast.NotIn)


def ways_to(body: Sequence[ast.stmt], name: str) -> frozenset[Way]:
    """Return the ways that were taken wherever these statements give a name something.

    `.name` stands for an attribute, of whatever. None is nothing.
    """
    found = list(_given(body, name, frozenset()))
    return frozenset.intersection(*found) if found else frozenset()


def ways_of(test: ast.expr, truth: bool) -> frozenset[Way]:
    """Return what is known of the conditions in a test that was answered so."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ways_of(test.operand, not truth)
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is not truth:
            return frozenset()  # one of them was answered so, and which one cannot be told
        return frozenset().union(*(ways_of(each, truth) for each in test.values))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, sign, right = test.left, test.ops[0], test.comparators[0]
        truth = truth is not isinstance(sign, _OTHERWISE)
        if not isinstance(sign, ast.Is | ast.IsNot):
            word = "in" if isinstance(sign, ast.In | ast.NotIn) else "=="
            known = isinstance(sign, ast.Eq | ast.NotEq | ast.In | ast.NotIn)
            said = f"{_last_words(left)} {word} {_last_words(right)}"
            return frozenset([(said, truth)]) if known else frozenset()
        if not isinstance(right, ast.Constant) or right.value is not None:
            return frozenset()
        test, truth = left, not truth  # `x is None`: there is no x
    words = _last_words(test)
    return frozenset([(words, truth)]) if words else frozenset()


def _last_words(node: ast.expr) -> str:
    """Return a setting as all call it: `adapt`, for `args.adapt`, `self.adapt`, `hp["adapt"]`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def _given(body: Sequence[ast.AST], name: str, ways: frozenset[Way]) -> Iterator[frozenset[Way]]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _given(node.body, name, ways | ways_of(node.test, True))
            yield from _given(node.orelse, name, ways | ways_of(node.test, False))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from _assigned(node, name, ways)
        else:
            if isinstance(node, ast.For) and _gives_to([node.target], name):
                yield ways
            for field in ("body", "handlers", "cases", "orelse", "finalbody"):
                yield from _given(getattr(node, field, ()), name, ways)


def _assigned(
    node: ast.Assign | ast.AnnAssign, name: str, ways: frozenset[Way]
) -> Iterator[frozenset[Way]]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if not _gives_to(targets, name):
        return
    value = node.value
    while isinstance(value, ast.IfExp):
        if _is_none(value.orelse):
            ways, value = ways | ways_of(value.test, True), value.body
        elif _is_none(value.body):
            ways, value = ways | ways_of(value.test, False), value.orelse
        else:
            break
    if value is not None and not _is_none(value):
        yield ways


def _gives_to(targets: Sequence[ast.expr], name: str) -> bool:
    return any(
        f".{part.attr}" == name if isinstance(part, ast.Attribute) else _is_name(part, name)
        for each in targets
        for part in parts_below(each)
    )


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
