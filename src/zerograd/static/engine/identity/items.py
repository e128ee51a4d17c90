"""What lists and dicts hold, what a loop yields, and what a mapped function is called with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.values import (
    NOTHING,
    Constant,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Tensor,
    Value,
    apart,
    leaves_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from zerograd.static.engine.identity.frame import Frame

MOST_MAPPED = 6  # items of a known list that a mapped function is called with


def items_of(value: Value) -> tuple[list[Value], bool]:
    """Return what a loop over `value` yields, and whether there may be more."""
    if isinstance(value, Several):
        return value.items, value.open
    if isinstance(value, Params):
        if value.part:
            return [value.some(one=True)], True
        return [Params(value.keys, one=True, filled=value.filled)], True
    if isinstance(value, Named):
        return [Named(f"{value.path}[*]")], True
    if isinstance(value, Mapping):
        return [Constant(key) for key in value.items], False
    if isinstance(value, Module):
        return [Module(f"{value.key}.[*]")], True
    if type(value) is Optimizer:  # there are several after all, which somebody unseen has made
        return [Named(f"{value.key}[*]")], True
    if isinstance(value, Tensor) and value.sure and value.deps:
        return [value], True  # each of several outputs comes from where they all do
    if isinstance(value, Constant) and isinstance(value.value, str) and len(value.value) < 9:
        return [Constant(each) for each in value.value], False  # for name in "ab"
    return [NOTHING], True


def depend_on_order(several: Several) -> bool:
    """Do its items act, one after the other, so that sorted they may do something else?"""
    acting = [each for each in several.items if isinstance(each, Instance | Function)]
    return len(acting) > 1


def mapped(call: Callable[[Arguments], Value], columns: list[Value]) -> Value:
    """`map(function, items)` calls the function with each of them, one row after another."""
    known = [items_of(each) for each in columns]
    length = min((len(items) for items, _ in known), default=0)
    results: list[Value] = []
    for number in range(min(length, MOST_MAPPED)):
        given = Arguments([items[number] for items, _ in known], {})
        results.append(call(given))
    return Several(results, any(open_ended for _, open_ended in known))


def appended(frame: Frame, item: Value) -> Value:
    """Return what a list is given: parameters that a test picked are a part of their network."""
    if not isinstance(item, Params) or not frame.program.picking:
        return item
    part = Params(item.keys, one=item.one, filled=item.filled, part=True)
    part.picks = frame.program.picking
    return part


def _is_typical(frame: Frame, row: Several) -> bool:
    """Has a loop put one into a list that was there before, as it does in each round?"""
    made = any(
        isinstance(each, Module | Optimizer | Instance) and each.key in frame.program.typical
        for each in leaves_of(row.items[-1])
    )
    return made and len(row.items) == 1 and row.depth < frame.program.repeating


def put_item(row: Several, index: Value, item: Value) -> None:
    """`actions[i] = actor(x)`: it stands in the place of another, or of one of the others."""
    item = apart(item, row)
    place = index.value if isinstance(index, Constant) else None
    if isinstance(place, int) and -len(row.items) <= place < len(row.items) and not row.open:
        row.items[place] = item
    elif all(isinstance(each, Constant) for each in row.items):  # [None] * n
        row.items[:], row.open = [item], True
    else:
        row.items.append(item)


def items_by(frame: Frame, base: Several | Mapping, name: str, arguments: Arguments) -> Value:
    """Return what a method of a list or of a dict gives, and put in what it is handed."""
    first = arguments.first()
    if isinstance(base, Mapping):
        if name == "keys":
            return Several([Constant(key) for key in base.items])
        if name == "values":
            return Several(list(base.items.values()))
        if name == "items":
            return Several([Several([Constant(key), item]) for key, item in base.items.items()])
        if name in ("get", "pop") and isinstance(first, Constant):
            return base.items.get(first.value, NOTHING)
        if name == "setdefault" and isinstance(first, Constant):
            return base.items.setdefault(first.value, apart(arguments.all()[-1], base))
        if name == "update":
            new: dict[object, Value] = dict(first.items) if isinstance(first, Mapping) else {}
            new.update(arguments.named)
            base.items.update({key: apart(each, base) for key, each in new.items()})
            frame.program.keep(base)
        return NOTHING
    if name == "append" and arguments.positional:
        item = apart(appended(frame, first), base)
        # made on one branch or on another, it is appended once
        if not (isinstance(item, Optimizer) and item.ident in {e.ident for e in base.items}):
            base.items.append(item)
            frame.program.keep(item)
            base.open = base.open or _is_typical(frame, base)
    elif name == "extend" and arguments.positional:
        more = first.items if isinstance(first, Several) else [first]
        base.items.extend([apart(each, base) for each in more])
    elif name == "sort" and depend_on_order(base):
        base.items[:], base.open = [NOTHING], True
    elif name == "values":  # of a dict whose keys are not known
        return base
    elif name == "items":
        return Several([Several([NOTHING, each]) for each in base.items], base.open)
    return NOTHING
