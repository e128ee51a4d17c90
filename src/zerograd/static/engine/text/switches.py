"""Switches: a name that a loop turns over in its first iteration, and never back.

`if first: first = False`, or `if optimizer is None: optimizer = Adam(…)`: what stands
under it happens once, whatever the test looks like.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from zerograd.static.engine.text.stores import statements_in, targets


def lasting_truth(loop: ast.AST | None, name: str) -> bool | None:
    """Return the truth that `name` has in every iteration but the first, if the loop settles it."""
    if not isinstance(loop, ast.For | ast.AsyncFor | ast.While):
        return None
    stored = sum(
        isinstance(each, ast.Name) and each.id == name
        for each in targets([loop])  # with its own
    )
    if not stored:
        return None
    truths = []
    for node in loop.body:
        given = _given(node, name)
        if given is not None:  # in every iteration
            truths.append(given)
            continue
        for each in statements_in([node]):
            if isinstance(each, ast.If):
                truths.extend(_turned(each, name))
    # Each of the assignments was understood, and all say the same.
    return truths[0] if len(truths) == stored and len(set(truths)) == 1 else None


def is_kept_each_round(loop: ast.AST | None, name: str) -> bool:
    """Does each round put something into `name`, and nothing that may be false or None?

    `previous = x`: what was None before the first round is there in all others.
    """
    if not isinstance(loop, ast.For | ast.AsyncFor | ast.While):
        return False
    given = [value for to, value in _always_given(loop.body) if to == name]
    stored = sum(isinstance(each, ast.Name) and each.id == name for each in targets([loop]))
    tests = (ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.NamedExpr)
    return bool(given) and len(given) == stored and not any(type(each) in tests for each in given)


def counts_up(loop: ast.AST | None, name: str) -> bool:
    """Does each round add a number to `name`, or make it a copy of one that is counted so?"""
    if not isinstance(loop, ast.For | ast.AsyncFor | ast.While):
        return False
    given = [value for to, value in _always_given(loop.body) if to == name]
    stored = sum(isinstance(each, ast.Name) and each.id == name for each in targets(loop.body))
    if len(given) != 1 or stored != 1:
        return False
    value = given[0]
    if isinstance(value, ast.Name) and value.id != name:
        return counts_up(loop, value.id)
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and isinstance(value.left, ast.Name)
        and value.left.id == name
        and isinstance(value.right, ast.Constant)
    )


def _always_given(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yield what is assigned to names under no condition, `n += 1` as `n + 1`."""
    for node in body:
        if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith):
            yield from _always_given(node.body)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read = ast.Name(node.target.id, ast.Load())
            yield node.target.id, ast.BinOp(read, node.op, node.value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            yield from ((each.id, what) for each, what in pairs if isinstance(each, ast.Name))


def _turned(node: ast.If, name: str) -> list[bool]:
    """Return the truth that a branch gives to `name`, where the opposite led there."""
    asked = _asked(node.test, name)
    if asked is None:
        return []
    found = [given for part in node.body if (given := _given(part, name)) is not None]
    leaves = any(isinstance(each, ast.Continue) for each in statements_in(node.body))
    return found if found == [not asked] and not leaves else []


def _asked(test: ast.expr, name: str) -> bool | None:
    """Return which truth of `name` the test asks for."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _asked(test.operand, name)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        right = test.comparators[0]
        if not isinstance(right, ast.Constant) or right.value not in (None, True, False):
            return None
        inner = _asked(test.left, name)
        if inner is None or not isinstance(test.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            return None
        same = isinstance(test.ops[0], ast.Is | ast.Eq)
        return bool(right.value) is same
    return True if isinstance(test, ast.Name) and test.id == name else None


def _given(node: ast.stmt, name: str) -> bool | None:
    """Return the truth of what a statement assigns to `name`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Name) or target.id != name:
        return None
    if isinstance(value, ast.Constant):
        return bool(value.value)
    return True if isinstance(value, ast.Call) and _makes(value) else None


def _makes(call: ast.Call) -> bool:
    """Is something made, and so surely there: a call of what is named like a class?"""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name[:1].isupper()
