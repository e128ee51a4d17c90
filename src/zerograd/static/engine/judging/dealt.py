"""Losses of some outputs of a network that gives several: `mel, stop = model(text)`.

Such a network has parts for each of them. That the loss of one output comes through a part of it
which another optimizer holds is not proved, then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.judging.origins import Assignments, assignments_around, loss_of

_DEEPEST = 8
_ALL = ""  # what is taken where no output is named


def takes_some_outputs(one: Happening, other: Happening, networks: set[str]) -> bool:
    """Does a loss take single outputs of the networks of these names, and not all of another's?"""
    names = _last(networks)
    taken, wanted = (
        {
            output
            for call, output in _taken(each, assignments_around(each))
            if path_of(call.func).rpartition(".")[2] in names
        }
        for each in (one, other)
    )
    has_all = _ALL in taken or (bool(wanted) and wanted <= taken)
    return bool(taken) and not has_all


def take_other_ways(one: Happening, other: Happening, networks: set[str]) -> bool:
    """Are the networks of these names told to do one thing for the one, another for the other?

    `net(x, mode="a")` and `net(x, mode="b")` may well go through other parts of it.
    """
    names = _last(networks)
    first, second = (
        {
            _told(call)
            for call, _ in _taken(each, assignments_around(each))
            if path_of(call.func).rpartition(".")[2] in names
        }
        for each in (one, other)
    )
    return bool(first) and bool(second) and first.isdisjoint(second)


def _last(networks: set[str]) -> set[str]:
    """Return the last words of their names: what is `policy` here is `self.policy` elsewhere."""
    return {network.rpartition(".")[2] for network in networks}


def _told(call: ast.Call) -> frozenset[str]:
    """Return the constants that a call hands over, by name or by place."""
    given = [(str(place), each) for place, each in enumerate(call.args)]
    given += [(each.arg or "", each.value) for each in call.keywords]
    return frozenset(
        f"{name}={each.value!r}" for name, each in given if isinstance(each, ast.Constant)
    )


def take_other_outputs(one: Happening, other: Happening) -> bool:
    """Do two losses come from one call, and share nothing of what it gives?"""
    if one.unit is not other.unit or one.scope != other.scope:
        return False
    given = assignments_around(one)
    first, second = _by_call(one, given), _by_call(other, given)
    return any(
        _ALL not in first[call] | second[call] and first[call].isdisjoint(second[call])
        for call in first.keys() & second.keys()
    )


def _by_call(backward: Happening, given: Assignments) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for call, output in _taken(backward, given):
        found.setdefault(id(call), set()).add(output)
    return found


def _taken(backward: Happening, given: Assignments) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls that a loss is computed from, each with the output that it takes."""
    loss = loss_of(backward.node)
    if loss is not None:
        yield from _outputs(loss, given, _ALL, 0)


def _outputs(
    node: ast.expr, given: Assignments, output: str, depth: int
) -> Iterator[tuple[ast.Call, str]]:
    if depth > _DEEPEST:
        return
    values = given.always_before(path_of(node), node.lineno)
    if values:
        for value in values:
            yield from _outputs(value, given, output, depth + 1)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield from _outputs(node.value, given, repr(node.slice.value), depth + 1)
    elif isinstance(node, ast.Attribute):
        yield from _outputs(node.value, given, repr(node.attr), depth + 1)
    elif isinstance(node, ast.Call):
        yield node, output
        handed = [*node.args, *(each.value for each in node.keywords)]
        if isinstance(node.func, ast.Attribute):
            handed.append(node.func.value)  # of `out.mean()` it is `out`
        for each in handed:
            yield from _outputs(each, given, _ALL, depth + 1)
    else:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                yield from _outputs(inner, given, _ALL, depth + 1)
