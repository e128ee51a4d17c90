"""Whether a clear is chosen: reached only where the round's own data say so.

`if norm > 10: opt.zero_grad()` leaves a batch out, and so does a guard against a loss that is
too large. What such a clear throws away is meant to be thrown away; only if it does so round
after round is something wrong.
"""

from __future__ import annotations

import ast

from zerograd.lifecycle.events import Spot
from zerograd.runtime.call_site import kind_of_is_user
from zerograd.runtime.callers import (
    chain_here,
    has_remainder,
    loops_among,
    nodes_around,
    nodes_at,
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor | ast.While
_COUNTING = frozenset({"range", "enumerate", "count"})


def is_chosen() -> bool:
    """Is the clear that goes on under a condition on what its round has computed?"""
    for caller in chain_here(with_libraries=True):
        if not kind_of_is_user(caller.code.co_filename):
            return False
        around = nodes_around(caller.code, caller.line)
        if _asks(around, caller.line):
            return True
        if loops_among(around) or _goes_backward(around[:1]):
            return False  # farther out, the loss is under the same conditions
    return False


def is_chosen_at(spot: Spot) -> bool:
    """Is a clear by hand, in no call, under such a condition?"""
    return spot.cell is None and _asks(nodes_at(spot), spot.line)


def _asks(around: list[ast.AST], line: int) -> bool:
    branches = [
        each
        for each in around
        if isinstance(each, ast.If) and not _goes_backward(_taken(each, line))
    ]
    if not branches:
        return False
    computed = _computed(around)
    return any(
        not computed.isdisjoint(_asked(each.test)) and not has_remainder(each.test)
        for each in branches
    )


def _taken(branches: ast.If, line: int) -> list[ast.stmt]:
    return branches.body if line <= (branches.body[-1].end_lineno or 0) else branches.orelse


def _goes_backward(nodes: list[ast.AST] | list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr.endswith("backward")
        for each in nodes
        for node in ast.walk(each)
    )


def _asked(test: ast.expr) -> set[str]:
    """Return the names that a condition asks for their values, and not only whether they are."""
    if isinstance(test, ast.BoolOp):
        return {name for each in test.values for name in _asked(each)}
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot):
        return set()
    return {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}


def _computed(around: list[ast.AST]) -> set[str]:
    """Return the names that are given data in each round: no counters, nothing that stays."""
    loops = loops_among(around)
    scope = loops[0] if loops else next((e for e in around if isinstance(e, _Function)), None)
    if scope is None:
        return set()
    computed = set() if loops else _parameters(scope)
    counters: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.For | ast.AsyncFor):
            names = _stored(node.target)
            counted = names[:1] if _called(node.iter) in _COUNTING else []
            counters.update(counted)
            computed.update(names[len(counted) :])
    assignments = [node for node in ast.walk(scope) if isinstance(node, ast.Assign)]
    for _ in range(2):  # what is computed from what was computed
        for node in assignments:
            if any(
                isinstance(each, ast.Call) or (isinstance(each, ast.Name) and each.id in computed)
                for each in ast.walk(node.value)
            ):
                computed.update(name for target in node.targets for name in _stored(target))
    return computed - counters


def _parameters(function: ast.AST) -> set[str]:
    if not isinstance(function, _Function):
        return set()
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return set(names) - {"self", "cls"}


def _stored(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _called(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
