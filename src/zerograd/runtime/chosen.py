"""Whether a clear or a step is chosen: reached only where the round's own data say so.

`if norm > 10: opt.zero_grad()` leaves a batch out, and so does `if norm < 10: opt.step()`. What
is thrown away there is meant to be thrown away; only if that goes on round after round is
something wrong.
"""

from __future__ import annotations

import ast
import re

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
_Block = _Loop | ast.If | ast.With | ast.AsyncWith
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp
_COUNTING = frozenset({"range", "enumerate", "count"})
_CHANCE = re.compile(r"^rand|random|uniform|bernoulli|choice")
# Parameters that a loop hands down, and no batch: `is_last`, `update_now`, `batch_idx`.
_OF_THE_LOOP = re.compile(r"accum|sync|step|update|window|last|first|end|idx|index|iter|epoch|^i$")


def is_chosen(*, may_leave: bool = False) -> bool:
    """Is the clear or step that goes on under a condition on what its round has computed?

    Args:
        may_leave: whether such a condition may also end the round before it. That keeps a step
            from a batch; a clear after it drops the batches that stay.
    """
    for caller in chain_here(with_libraries=True):
        if not kind_of_is_user(caller.code.co_filename):
            return False
        around = nodes_around(caller.code, caller.line)
        if _asks(around, caller.line, may_leave):
            return True
        if loops_among(around) or _goes_backward(around[:1]):
            return False  # farther out, the loss is under the same conditions
    return False


def is_chosen_at(spot: Spot, *, may_leave: bool = False) -> bool:
    """Is a clear by hand, in no call, under such a condition?"""
    return spot.cell is None and _asks(nodes_at(spot), spot.line, may_leave)


def _asks(around: list[ast.AST], line: int, may_leave: bool) -> bool:
    tests = [
        each.test
        for each in around
        if isinstance(each, ast.If) and not _goes_backward(_taken(each, line))
    ]
    if may_leave:
        tests += [each.test for part in around for each in _ways_out(part, line)]
    if not tests:
        return False
    computed = _computed(around)
    lists = _lists(around)
    return any(
        (_is_drawn(each) or not computed.isdisjoint(_asked(each, lists)))
        and not has_remainder(each)
        for each in tests
    )


def _ways_out(around: ast.AST, line: int) -> list[ast.If]:
    """Return what may keep a turn that has gone backward from coming to this line.

    `if norm > 10: break` before a step leaves the batch out, as `if norm <= 10: opt.step()` does.
    """
    if not isinstance(around, _Block) or line > (around.body[-1].end_lineno or 0):
        return []
    before = [each for each in around.body if (each.end_lineno or each.lineno) < line]
    last = max((n for n, each in enumerate(before) if _goes_backward([each])), default=len(before))
    return [
        each
        for each in before[last:]
        if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Break | ast.Continue)
    ]


def _is_drawn(test: ast.expr) -> bool:
    """Is it left to chance?"""
    return any(_CHANCE.search(_called(node)) for node in ast.walk(test))


def _taken(branches: ast.If, line: int) -> list[ast.stmt]:
    return branches.body if line <= (branches.body[-1].end_lineno or 0) else branches.orelse


def _goes_backward(nodes: list[ast.AST] | list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr.endswith("backward")
        for each in nodes
        for node in ast.walk(each)
    )


def _asked(test: ast.expr, lists: set[str]) -> set[str]:
    """Return the names that a condition asks for their values, and not only whether they are."""
    if isinstance(test, ast.BoolOp):
        return {name for each in test.values for name in _asked(each, lists)}
    if isinstance(test, ast.Name) and test.id in lists:
        return set()
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot):
        return set()
    return _names(_without_settings(test))


def _lists(around: list[ast.AST]) -> set[str]:
    """Return the names of lists: `if grads:` asks for the length of one, as `len(grads)` does."""
    return {
        name
        for node in ast.walk(around[0])
        if isinstance(node, ast.Assign) and isinstance(node.value, _Comprehension)
        for target in node.targets
        for name in _stored(target)
    }


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
            if _is_of_data(node.value, computed, counters):
                computed.update(name for target in node.targets for name in _stored(target))
    return computed - counters


def _is_of_data(value: ast.expr, computed: set[str], counters: set[str]) -> bool:
    """Is it made of the round's data, or by a call that is given more than counters?"""
    parts = _without_settings(value)
    given = [
        {each.id for arg in node.args for each in ast.walk(arg) if isinstance(each, ast.Name)}
        for node in parts
        if isinstance(node, ast.Call)
    ]
    if any(not names or not names <= counters for names in given):
        return True
    return not has_remainder(value) and not computed.isdisjoint(_names(parts))


def _without_settings(value: ast.AST) -> list[ast.AST]:
    """Return the nodes of an expression but for what no batch decides: `len(…)`, `.training`."""
    if isinstance(value, ast.Call) and _called(value) == "len":
        return []
    if isinstance(value, ast.Attribute) and value.attr == "training":
        return []
    inner = [each for node in ast.iter_child_nodes(value) for each in _without_settings(node)]
    return [value, *inner]


def _names(nodes: list[ast.AST]) -> set[str]:
    """Return what is named, with each part of a path: `loss.item` and `loss`."""
    return {ast.unparse(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}


def _parameters(function: ast.AST) -> set[str]:
    if not isinstance(function, _Function):
        return set()
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return {name for name in names if not _OF_THE_LOOP.search(name)} - {"self", "cls"}


def _stored(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return [name for each in target.elts for name in _stored(each)]
    return [ast.unparse(target)] if isinstance(target, ast.Name | ast.Attribute) else []


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
