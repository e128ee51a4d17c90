"""Typical things: what is made in each round of a loop is read once, and stands for all of them.

`nets = [Net() for name in names]` has one network here. `nets[0]` and `nets[1]` are two all the
same, and what is done to the typical one is done to both.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.values import (
    Mapping,
    Module,
    Optimizer,
    Params,
    Several,
    Value,
)

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_DEEPEST = 3  # objects in objects


def at_place(program: Program, item: Value, place: object) -> Value:
    """Return the one of a list or a dict, of which a typical item is known, at this place."""
    counted_back = isinstance(place, int) and place < 0
    if counted_back or not isinstance(place, int | str) or not program.typical:
        return item
    return _placed(program, item, f"[{place!r}]", _DEEPEST)


def _placed(program: Program, item: Value, place: str, depth: int) -> Value:
    typical = program.typical
    if isinstance(item, Module):
        return Module(_at(item.key, place)) if item.key in typical else item
    if isinstance(item, Params) and item.keys <= typical:
        one = copy(item)
        one.keys = frozenset(_at(each, place) for each in item.keys)
        return one
    if isinstance(item, Optimizer) and item.keys and item.key in typical:
        optimizer = copy(item)
        optimizer.key = _at(item.key, place)
        optimizer.keys = frozenset(
            _at(each, place) if each in typical else each for each in item.keys
        )
        return optimizer
    if depth and isinstance(item, Instance) and item.key in typical:
        return _instance(program, item, place, depth - 1)
    if depth and isinstance(item, Several):
        return Several([_placed(program, each, place, depth - 1) for each in item.items], item.open)
    if depth and type(item) is Mapping:
        return Mapping(
            {key: _placed(program, each, place, depth - 1) for key, each in item.items.items()}
        )
    return item


def _instance(program: Program, item: Instance, place: str, depth: int) -> Instance:
    key = _at(item.key, place)
    one = program.placed.get(key)
    if one is None:
        one = program.placed[key] = copy(item)
        one.key, one.attributes, one.primed = key, {}, set(item.primed)
    for name, value in item.attributes.items():
        if name not in one.attributes:  # else it was set for this one alone
            one.attributes[name] = _placed(program, value, place, depth)
    return one


def _at(key: str, place: str) -> str:
    """Return a key at a place: what covers the typical one covers it.

    >>> _at("nets[*]@3", "[0]"), _at("net@3", "[0]")
    ('nets[0]@3', 'net@3[0]')
    """
    return key.replace("[*]", place, 1) if "[*]" in key else f"{key}{place}"
