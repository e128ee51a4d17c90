"""Calls that hand on what they are given: `list`, `chain`, `filter`, `sorted`, `zip`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Function
from zerograd.static.engine.identity.items import depend_on_order, items_of
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import (
    NOTHING,
    Module,
    Named,
    Params,
    Several,
    Value,
    leaves_of,
)

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame

Reader = Callable[["Frame", str, Arguments], "Value | None"]

_PASSING = frozenset(
    [
        "list",
        "tuple",
        "set",
        "iter",
        "chain",
        "from_iterable",
        "filter",
        "concat",
    ]
)


def _items(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return _passed(arguments)


def _sorted(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    passed = _passed(arguments)
    return NOTHING if isinstance(passed, Several) and depend_on_order(passed) else passed


def _reversed(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    passed = _passed(arguments)
    return Several(passed.items[::-1], passed.open) if isinstance(passed, Several) else passed


def _filtered(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    if _leaves_some_out(arguments.first()):
        return Params(frozenset(f"{key}.rest" for key in keys_of(_passed(arguments))))
    kept, test = _passed(arguments), arguments.first()
    if isinstance(kept, Params) and isinstance(test, Function):
        kept.part = kept.part or not test.unit.mentions(test.node, "grad")
    return kept


def _rows(frame: Frame, dotted: str, arguments: Arguments) -> Value:
    return _zipped(dotted.rpartition(".")[2], arguments)


def _leaves_some_out(test: Value) -> bool:
    """Is it `lambda p: id(p) not in others`? What is left is held apart from the others."""
    return isinstance(test, Function) and bool(
        re.search(r"\bid\(\w+\)\s+not\s+in\b", test.unit.text_of(test.node))
    )


def _passed(arguments: Arguments) -> Value:
    values = arguments.positional
    keyed = [each for value in values for each in leaves_of(value) if isinstance(each, Params)]
    if keyed:
        picks = any(
            isinstance(each, Function) and each.unit.mentions_gradient(each.node) for each in values
        )
        filled = picks or all(each.filled for each in keyed)
        # several parts together may well be the whole
        part = len(keyed) == 1 and keyed[0].part
        passed = Params(keys_of(Several(list(keyed))), filled=filled, part=part)
        passed.picks = frozenset.intersection(*(each.picks for each in keyed))
        return passed
    if len(values) == 1:
        return values[0]
    known = [value for value in values if isinstance(value, Several | Named | Module)]
    if known:
        items = [each for value in known for each in leaves_of(value)]
        return Several(items, open=True)
    return NOTHING


def _zipped(name: str, arguments: Arguments) -> Value:
    columns = [items_of(value) for value in arguments.positional]
    if name == "enumerate":
        items, open_ended = columns[0] if columns else ([NOTHING], True)
        rows: list[Value] = [Several([NOTHING, item]) for item in items]
        return Several(rows, open_ended)
    if not columns:
        return NOTHING
    known = [items for items, open_ended in columns if not open_ended]
    length = min((len(items) for items in known), default=1)
    table: list[Value] = [
        Several([_at(items, n, open_ended and length > 1) for items, open_ended in columns])
        for n in range(length)
        if all(items for items, _ in columns)
    ]
    return Several(table, not known)


def _at(items: list[Value], number: int, open_ended: bool) -> Value:
    """Return an item of a column; of one of unknown length each row has another one."""
    item = items[number] if number < len(items) else items[0]
    if not open_ended:
        return item
    if isinstance(item, Module):
        return Module(item.key.replace("[*]", f"[{number}]"))
    if isinstance(item, Named):
        return Named(item.path.replace("[*]", f"[{number}]"))
    return item


HANDED_ON: dict[str, Reader] = {
    **dict.fromkeys(_PASSING, _items),
    "sorted": _sorted,
    "reversed": _reversed,
    "filter": _filtered,
    "zip": _rows,
    "enumerate": _rows,
}
