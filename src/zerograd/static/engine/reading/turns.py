"""Loops in which each turn has an optimizer of its own: its item, or looked up by it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.places import has_row
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit

_ACTS = frozenset({"step", "zero_grad"})
_EXPRESSIONS = (ast.expr, ast.withitem)


def has_its_own_each_turn(unit: Unit, loop: ast.For | ast.AsyncFor, stored: frozenset[str]) -> bool:
    """Is all that steps or clears in the loop its item, or looked up by its target?

    `for i in range(n): … optimizers[i].step()` does one thing to each of them, as
    `for optimizer in optimizers: …` does. `stored` are the names that the loop assigns.
    """
    if not unit.has_events(loop):
        return False  # most loops: seen without walking through them
    targets = {  # of `for self.epoch in …` not the object, which is the same in each turn
        each.id
        for each in parts_below(loop.target)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    acts, named = False, set[str]()
    for each in _acting(unit, loop.body):
        acts = True
        if _is_looked_up(each, targets):
            continue
        if not isinstance(each, ast.Name) or each.id not in stored:
            return False  # the same one in each turn: most loops
        named.add(each.id)
    return acts and named <= _looked_up_into(named, loop.body, targets)


def stepped_in_each_turn(
    unit: Unit, loop: ast.For | ast.AsyncFor, stored: frozenset[str]
) -> list[ast.expr]:
    """Return what the loop itself steps that is the same one in each turn: `self.encoder_opt`."""
    if not unit.has_events(loop):
        return []
    return [
        each
        for each in _acting(unit, loop.body, frozenset(("step",)))
        if (root := path_of(each).split(".", 1)[0]) and root not in stored
    ]


def _acting(unit: Unit, body: list[ast.stmt], names: frozenset[str] = _ACTS) -> Iterator[ast.expr]:
    """Yield what steps or clears in these statements; the lines without events are left out."""
    rows = [row for word in _ACTS for row in unit.places.rows(word)]
    if not body or not has_row(sorted(rows), body[0].lineno, body[-1].end_lineno or 0):
        return
    for statement in statements_in(body):
        if not isinstance(statement, ast.stmt) or not unit.has_events(statement):
            continue
        for part in ast.iter_child_nodes(statement):
            if not isinstance(part, _EXPRESSIONS) or not _may_act(unit, part):
                continue
            for each in parts_below(part):
                if (
                    type(each) is ast.Call
                    and type(each.func) is ast.Attribute
                    and each.func.attr in names
                ):
                    by_scaler = each.args and is_scaler_name(path_of(each.func.value))
                    yield each.args[0] if by_scaler else each.func.value


def _may_act(unit: Unit, part: ast.AST) -> bool:
    """Does it speak of a step or a clear at all? Most do not, and need no walk."""
    if isinstance(part, ast.withitem):
        return True  # it has no lines of its own
    return any(unit.mentions(part, word) for word in _ACTS)


def _looked_up_into(names: set[str], body: list[ast.stmt], targets: set[str]) -> set[str]:
    """Return those of the names that are given something looked up by the targets."""
    found: set[str] = set()
    for each in statements_in(body):
        if isinstance(each, ast.Assign):
            given = {name for target in each.targets for name in _named_in(target)} & names
            if given and _is_looked_up(each.value, targets):
                found |= given
    return found


def _named_in(target: ast.expr) -> Iterator[str]:
    """Yield the names in a target; most are one."""
    if type(target) is ast.Name:
        yield target.id
    else:
        yield from (each.id for each in parts_below(target) if type(each) is ast.Name)


def _is_looked_up(node: ast.expr, targets: set[str]) -> bool:
    """Is it the target, a part of it, or what an index or an argument that names it finds?"""
    while True:
        if isinstance(node, ast.Subscript):
            if _names(node.slice, targets):
                return True
            node = node.value
        elif isinstance(node, ast.Call):
            if any(_names(each, targets) for each in node.args):
                return True
            node = node.func
        elif isinstance(node, ast.Attribute):
            node = node.value
        else:
            return isinstance(node, ast.Name) and node.id in targets


def _names(index: ast.expr, targets: set[str]) -> bool:
    """Does it name a target? A remainder comes to the same one again: `optimizers[i % 2]`."""
    inside = list(ast.walk(index))
    again = any(isinstance(each, ast.Mod) for each in inside)
    return not again and any(isinstance(each, ast.Name) and each.id in targets for each in inside)
