"""What a loop yields, and what a function is called with that is mapped over it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.arguments import Arguments
from zerograd.static.engine.values import (
    NOTHING,
    Constant,
    Function,
    Mapping,
    Module,
    Named,
    Params,
    Several,
    Value,
)

if TYPE_CHECKING:
    from zerograd.static.engine.frame import Frame

MOST_MAPPED = 6  # items of a known list that a mapped function is called with


def items_of(value: Value) -> tuple[list[Value], bool]:
    """Return what a loop over `value` yields, and whether there may be more."""
    if isinstance(value, Several):
        return value.items, value.open
    if isinstance(value, Params):
        return [Params(value.keys, one=True, filled=value.filled, part=value.part)], True
    if isinstance(value, Named):
        return [Named(f"{value.path}[*]")], True
    if isinstance(value, Mapping):
        return [Constant(key) for key in value.items], False
    if isinstance(value, Module):
        return [Module(f"{value.key}.[*]")], True
    return [NOTHING], True


def mapped(frame: Frame, node: ast.Call, function: Function, columns: list[Value]) -> Value:
    """`map(function, items)` calls the function with each of them, one row after another."""
    known = [items_of(each) for each in columns]
    length = min((len(items) for items, _ in known), default=0)
    results: list[Value] = []
    for number in range(min(length, MOST_MAPPED)):
        given = Arguments([items[number] for items, _ in known], {})
        results.append(frame.program.invoke(frame, node, function, given))
    return Several(results, any(open_ended for _, open_ended in known))


def appended(frame: Frame, item: Value) -> Value:
    """Return what a list is given: parameters that a test picked are a part of their network."""
    if not isinstance(item, Params) or not frame.program.picking:
        return item
    part = Params(item.keys, one=item.one, filled=item.filled, part=True)
    part.picks = frame.program.picking
    return part
