"""The terms of a loss, by their names, and the networks that they come through."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.judging.origins import Assignments, items_of

_DEEPEST = 12
_CUTS = frozenset(("detach", "detach_", "item", "numpy", "data"))


class Term(NamedTuple):
    """One of those that are added up, and the names it has on the way there."""

    names: tuple[str, ...]
    node: ast.expr


def terms(loss: ast.expr, given: Assignments) -> Iterator[Term]:
    """Yield what a sum is made of, outermost names first; nothing if it is no sum."""
    parts = list(_added(loss, given, 0))
    for part in parts if len(parts) > 1 else ():
        yield from terms_of(part, given)


def terms_of(loss: ast.expr, given: Assignments) -> Iterator[Term]:
    """Yield what a loss is made of: its own name is the first of each."""
    while isinstance(loss, ast.Call) and len(loss.args) == 1:  # scaler.scale(loss)
        loss = loss.args[0]
    yield from _named(loss, given, (), 0)


def signed_terms(
    loss: ast.expr, given: Assignments, plus: bool = True, depth: int = 0
) -> Iterator[tuple[str, int, bool]]:
    """Yield the last names of what a sum is made of, where each was given, and with which sign.

    What a function returns is followed to the names that it has in there.
    """
    if depth > _DEEPEST or given.is_cut_off(loss):
        return
    deeper = depth + 1
    if isinstance(loss, ast.BinOp) and isinstance(loss.op, ast.Add | ast.Sub):
        yield from signed_terms(loss.left, given, plus, deeper)
        minus = isinstance(loss.op, ast.Sub)
        yield from signed_terms(loss.right, given, plus ^ minus, deeper)
    elif isinstance(loss, ast.UnaryOp) and isinstance(loss.op, ast.USub):
        yield from signed_terms(loss.operand, given, not plus, deeper)
    elif (
        isinstance(loss, ast.Call) and len(loss.args) == 1 and path_of(loss.func).endswith("scale")
    ):
        yield from signed_terms(loss.args[0], given, plus, deeper)
    elif isinstance(loss, ast.Subscript):
        yield from _signed_item(loss, given, plus, deeper)
    elif isinstance(loss, ast.Name | ast.Attribute):
        values = given.before(path_of(loss), loss.lineno)
        inner = values if len(values) == 1 else []
        known = [each for value in inner for each in signed_terms(value, given, plus, deeper)]
        yield from known
        if inner and not known:
            yield path_of(loss), inner[0].lineno, plus


def _signed_item(
    item: ast.Subscript, given: Assignments, plus: bool, depth: int
) -> Iterator[tuple[str, int, bool]]:
    """Follow one of the values that a method of the file returns."""
    made, index = item.value, item.slice
    if not (isinstance(made, ast.Call) and isinstance(index, ast.Constant)):
        return
    path = path_of(made.func).split(".")
    found = given.of_function(path[-1]) if path[0] == "self" or len(path) == 1 else None
    if found is None or len(found[1]) != 1:
        return
    inside, (returned,) = found
    values = returned.elts if isinstance(returned, ast.Tuple) else []
    if isinstance(index.value, int) and index.value < len(values):
        yield from signed_terms(values[index.value], inside, plus, depth)


def names_of_sum(loss: ast.expr, given: Assignments) -> Iterator[str]:
    """Yield the names that all of it has."""
    while isinstance(loss, ast.Call) and len(loss.args) == 1:
        loss = loss.args[0]
    for _ in range(_DEEPEST):
        path = path_of(loss)
        values = given.before(path, loss.lineno) if path else []
        if path:
            yield path
        if len(values) != 1:
            return
        loss = values[0]


def _added(node: ast.expr, given: Assignments, depth: int) -> Iterator[ast.expr]:
    """Yield the parts of the outermost sum; the name of all of it says nothing of one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Call) and len(node.args) == 1:
        yield from _added(node.args[0], given, depth + 1)  # scaler.scale(loss)
    elif isinstance(node, ast.Name | ast.Attribute) and depth < _DEEPEST:
        values = given.before(path_of(node), node.lineno)
        if len(values) > 1:
            yield from values
        elif values:
            yield from _added(values[0], given, depth + 1)


def _named(
    node: ast.expr, given: Assignments, names: tuple[str, ...], depth: int
) -> Iterator[Term]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _named(node.left, given, names, depth)
        yield from _named(node.right, given, names, depth)
        return
    if isinstance(node, ast.UnaryOp):
        yield from _named(node.operand, given, names, depth)
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _named(node.left, given, names, depth)  # by the size of a window, say
        return
    values: list[ast.expr] = []
    if isinstance(node, ast.Name | ast.Attribute) and depth < _DEEPEST:
        names = (*names, path_of(node))
        values = given.on_any_way(path_of(node), node.lineno)
    for value in values:
        yield from _named(value, given, names, depth + 1)
    if not values and names:
        yield Term(names, node)


class Passage:
    """The way of a loss through one optimizer's networks, fed by those of another."""

    def __init__(self, networks: set[str], makers: set[str]) -> None:
        self._networks = networks
        self._makers = makers

    def passes(self, node: ast.expr, given: Assignments, handed: bool = False) -> bool:
        """Does it come through one of the networks; with `handed`, out of a maker before?"""
        return any(
            not handed or self.is_handed(each, inside)
            for each, inside in _calls(node, given, self._networks)
        )

    def is_handed(self, call: ast.Call, given: Assignments) -> bool:
        """Is a network handed what a maker made, not cut off from it?"""
        handed = [*call.args, *(each.value for each in call.keywords)]
        return any(True for each in handed for _ in _calls(each, given, self._makers))


class _Way(NamedTuple):
    """How far a loss was followed, and the items of the comprehensions around."""

    depth: int = 0
    items: tuple[tuple[str, str], ...] = ()

    def into(self, node: ast.AST) -> _Way:
        """Return the way to what is inside of `node`."""
        items = self.items
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            for each in node.generators:
                items = (*items, *items_of(each.target, each.iter))
        return _Way(self.depth + 1, items)

    def called(self, call: ast.Call, given: Assignments) -> str:
        """Return the path of what is called: for one of several networks, that of all of them."""
        func = call.func
        while isinstance(func, ast.Subscript):
            func = func.value
        path = path_of(func)
        return dict(self.items).get(path) or given.taken_from(path, call.lineno) or path


def _calls(
    node: ast.expr,
    given: Assignments,
    networks: set[str],
    way: _Way = _Way(),  # noqa: B008
    seen: set[int] | None = None,
) -> Iterator[tuple[ast.Call, Assignments]]:
    """Yield the calls of these networks that gradients come back to from `node`."""
    seen = seen if seen is not None else set()
    if way.depth > _DEEPEST or id(node) in seen or given.is_cut_off(node):
        return
    seen.add(id(node))
    if isinstance(node, ast.Attribute) and node.attr in _CUTS:
        return
    deeper = way.into(node)
    if isinstance(node, ast.Call):
        path = way.called(node, given).replace(".module.", ".").split(".")  # DDP's
        if path[-1] in _CUTS:
            return
        if path[-1] in networks or (len(path) > 1 and path[-2] in networks):
            yield node, given
        elif path[0] == "self" or len(path) == 1:
            found = given.of_function(path[-1])
            for returned in found[1] if found is not None else ():
                assert found is not None
                yield from _calls(returned, found[0], networks, deeper, seen)
    path_here = path_of(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    values = given.before(path_here, node.lineno) if path_here else []
    inner: Iterable[ast.AST] = values or ast.iter_child_nodes(node)
    for each in inner:
        if isinstance(each, ast.expr):
            yield from _calls(each, given, networks, deeper, seen)
        elif isinstance(each, ast.keyword):
            yield from _calls(each.value, given, networks, deeper, seen)
