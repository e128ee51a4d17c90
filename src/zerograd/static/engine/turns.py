"""Loops in which each turn has an optimizer of its own: its item, or looked up by it."""

from __future__ import annotations

import ast

_ACTS = frozenset({"step", "zero_grad"})


def has_its_own_each_turn(loop: ast.For | ast.AsyncFor) -> bool:
    """Is all that steps or clears in the loop its item, or looked up by its target?

    `for i in range(n): … optimizers[i].step()` does one thing to each of them, as
    `for optimizer in optimizers: …` does.
    """
    targets = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    acting = [
        each.func.value
        for part in loop.body
        for each in ast.walk(part)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in _ACTS
    ]
    if not acting:
        return False
    looked_up = {
        name.id
        for part in loop.body
        for each in ast.walk(part)
        if isinstance(each, ast.Assign) and _is_looked_up(each.value, targets)
        for target in each.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    return all(
        _is_looked_up(each, targets) or (isinstance(each, ast.Name) and each.id in looked_up)
        for each in acting
    )


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
