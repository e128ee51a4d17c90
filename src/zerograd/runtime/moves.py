"""What one statement may change in weights, and whether it is made of their gradients.

As it is written: `p -= lr * p.grad` is an update, `p.clamp_(-1, 1)` is none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from zerograd.runtime.in_sight import MEASURES
from zerograd.runtime.written import is_grad, mentions_grad

# Calls that change what they are given, or what they are a method of, by other names than `add_`.
_LOADS = re.compile(
    r"load_state_dict|vector_to_parameters|restore|copy_to|apply_shadow|swap_\w+|_foreach_\w+_"
)
_SENDS = re.compile(r"broadcast|all_reduce|reduce|recv")
_OF_OTHERS = re.compile(r"opt|sched|scaler|loader|sampler", re.IGNORECASE)
_HARMLESS = re.compile(
    r"_+\w*|\w*_grad_|detach_|share_memory_|unscale_|clip_grad\w*_|\w*register\w*_|rename_|names_"
)
_FUNCTIONS = frozenset({"torch", "init", "nn.init", "torch.nn.init", "F", "torch.nn.functional"})
_KEEPS = frozenset({"append", "extend", "insert", "update", "setdefault", "appendleft"})
_MEASURES = MEASURES - {"numpy"}


class Carried:
    """The names in one function that hold something made of a gradient."""

    def __init__(
        self, function: ast.AST, returning: set[str], shared: Carried | None = None
    ) -> None:
        self.names: set[str] = set()
        self.returning = returning  # the functions that return one
        self._shared = shared
        inside = list(ast.walk(function))
        self.weights = {ast.unparse(each.value) for each in inside if is_grad(each)}  # type: ignore[attr-defined]
        self._counts = {
            target.id
            for each in inside
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
            for target in each.targets
            if isinstance(target, ast.Name)
        }

    def has(self, name: str) -> bool:
        return name in self.names or bool(self._shared and self._shared.has(name))

    def add(self, target: ast.AST) -> None:
        """Take up a variable, or what it is a part of: `self.v[i]` is one of `self.v`."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self.add(each)
            return
        while isinstance(target, (ast.Subscript, ast.Starred)):
            target = target.value
        name = ast.unparse(target)
        if is_grad(target) or name.removesuffix(".data") in self.weights:
            return
        self.names.add(name)
        if self._shared is not None and isinstance(target, ast.Attribute):
            self._shared.names.add(name)

    def is_count(self, target: ast.AST) -> bool:
        """Is it a number that the function begins with itself?"""
        return isinstance(target, ast.Name) and target.id in self._counts

    def is_made_of_gradients(self, node: ast.AST) -> bool:
        """Does an expression hold a gradient, other than to measure or to test it?"""
        if is_grad(node):
            return True
        if isinstance(node, ast.Name):
            return self.has(node.id)
        if isinstance(node, ast.Attribute) and self.has(ast.unparse(node)):
            return True
        if isinstance(node, ast.Compare):
            return False
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            if name in _MEASURES:
                return False
            if name in self.returning:
                return True
        return any(map(self.is_made_of_gradients, ast.iter_child_nodes(node)))

    def follow(self, statement: ast.stmt) -> None:
        """Take up what a statement puts a gradient into."""
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            if statement.value is not None and self.is_made_of_gradients(statement.value):
                for each in getattr(statement, "targets", None) or [statement.target]:  # type: ignore[union-attr]
                    self.add(each)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            for target, source in _pairs(statement.target, statement.iter):
                if self.is_made_of_gradients(source):
                    self.add(target)
        for call in _calls(statement):
            function = call.func
            if not isinstance(function, ast.Attribute) or not _is_made(call, self):
                continue
            if function.attr in _KEEPS:
                self.add(function.value)
            elif _is_in_place(function.attr):
                self.add(_receiver(function.value))


def changes(statement: ast.stmt, carried: Carried, *, is_free: bool) -> Iterator[bool]:
    """Yield True for each update by a gradient, False for any other change of what may be weights.

    Args:
        is_free: whether gradients are off there. Where they are on, torch lets nobody change a
            weight in place but by way of `.data`.
    """
    if isinstance(statement, ast.AugAssign):
        is_made = carried.is_made_of_gradients(statement.value)
        if _may_be_weights(statement.target, carried, is_free=is_free or is_made):
            yield is_made
    elif isinstance(statement, ast.Assign):
        for target in _flat(statement.targets):
            is_part = isinstance(target, ast.Subscript) and is_free
            if (is_part or _is_data(target)) and not mentions_grad(target):
                yield carried.is_made_of_gradients(statement.value)
    for call in _calls(statement):
        changed = _changed_by(call)
        if changed is None:
            continue
        is_made = _is_made(call, carried)
        name = name_of(call.func)
        is_open = is_free or is_made or bool(_LOADS.fullmatch(name)) or _is_init(call)
        if _may_be_weights(changed, carried, is_free=is_open and not _SENDS.fullmatch(name)):
            yield is_made


def name_of(function: ast.AST) -> str:
    """Return `f` of `f(…)` and `a.f(…)`."""
    name = getattr(function, "attr", getattr(function, "id", ""))
    return name if isinstance(name, str) else ""


def _changed_by(call: ast.Call) -> ast.AST | None:
    """Return what a call changes in place, None if nothing is known to be."""
    name, function = name_of(call.func), call.func
    for each in call.keywords:
        if each.arg == "out":
            return each.value
    is_loading = _LOADS.fullmatch(name)
    if not (is_loading or _SENDS.fullmatch(name) or _is_in_place(name)):
        return None
    of = function.value if isinstance(function, ast.Attribute) else None
    if _is_init(call) or of is None or _SENDS.fullmatch(name) or name.startswith("_foreach"):
        return call.args[-1 if name == "vector_to_parameters" else 0] if call.args else None
    if is_loading and (ast.unparse(of) in _FUNCTIONS or name == "vector_to_parameters"):
        return call.args[-1] if call.args else None
    return None if is_loading and _OF_OTHERS.search(ast.unparse(of)) else of


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not _HARMLESS.fullmatch(name)


def _is_init(call: ast.Call) -> bool:
    """Is it a function of torch's that changes its argument: `nn.init.normal_(w)`?"""
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr.endswith("_")
        and ast.unparse(function.value) in _FUNCTIONS
    )


def _may_be_weights(target: ast.AST, carried: Carried, *, is_free: bool) -> bool:
    if mentions_grad(target) or carried.is_count(target):
        return False
    return _is_data(target) or (is_free and not isinstance(target, ast.Constant))


def _is_data(target: ast.AST) -> bool:
    """Is it changed past autograd: `p.data`, `p.data[i]`, `p.detach()`?"""
    return any(
        isinstance(each, ast.Attribute) and each.attr in ("data", "detach")
        for each in ast.walk(target)
    )


def _is_made(call: ast.Call, carried: Carried) -> bool:
    """Is it given a gradient: `p.add_(g)`, and `p.mul_(b).add_(g)` as well?"""
    function = call.func
    inner = function.value if isinstance(function, ast.Attribute) else None
    given = [*call.args, *(each.value for each in call.keywords)]
    return any(map(carried.is_made_of_gradients, given)) or (
        isinstance(inner, ast.Call) and _is_made(inner, carried)
    )


def _receiver(node: ast.AST) -> ast.AST:
    """Return `m` of `m.mul_(b).add_`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls in a statement itself, and not in those inside it."""
    for part in own_parts(statement):
        for node in ast.walk(part):
            if isinstance(node, ast.Call):
                yield node


def own_parts(statement: ast.stmt) -> list[ast.expr]:
    """Return the expressions of a statement: of a loop or a condition only its head."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    return [
        part
        for each in ast.iter_child_nodes(statement)
        for part in ([each.context_expr] if isinstance(each, ast.withitem) else [each])
        if isinstance(part, ast.expr)
    ]


def _flat(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for each in targets:
        if isinstance(each, (ast.Tuple, ast.List)):
            yield from _flat(each.elts)
        else:
            yield each


def _pairs(target: ast.expr, source: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return which variable of a loop goes through what: `for p, g in zip(ps, gs)`."""
    if isinstance(source, ast.Call) and isinstance(target, ast.Tuple):
        name = name_of(source.func)
        if name == "enumerate" and len(target.elts) == 2 and source.args:
            return _pairs(target.elts[1], source.args[0])
        if name == "zip" and len(target.elts) == len(source.args):
            return list(zip(target.elts, source.args, strict=True))
    return [(target, source)]
