"""Loops that a class inherits, around steps that are its own.

A base class trains: `fit` calls `self.backward()` and `self.step()`, which only its subclasses
have. Read with the base alone such a loop does nothing, and the steps alone have no loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.elsewhere import asks_above
from zerograd.static.engine.text.classes import ClassUnit

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

# What such a loop is read for. Who else calls the steps may update a scaler for them.
OF_INHERITED = frozenset(("ZG101", "ZG102", "ZG203", "ZG401", "ZG501"))

_OWN_CALL = re.compile(r"\bself\.(\w+)\s*\(")


def inherited_loops(program: Program) -> Iterator[tuple[Function, ClassUnit | None]]:
    """Yield the outermost inherited methods that come to what a class does itself."""
    for cls in program.main.classes.values():
        if cls.bases and program.main.has_events(cls.node) and not program.is_optimizer(cls):
            yield from _inherited_by(program, cls)


def _inherited_by(program: Program, cls: ClassUnit) -> Iterator[tuple[Function, ClassUnit | None]]:
    unit = program.main
    reached = {name for name, method in cls.methods.items() if unit.has_events(method)}
    reached.discard("__init__")
    inherited: dict[str, ClassUnit] = {}
    for base in program.lineage(cls)[1:]:
        for name in base.methods:
            own = cls.methods.get(name)
            # `def train(self): super().train(self.epochs)` only hands on
            if own is None or (name not in reached and asks_above(unit.text_of(own), name)):
                inherited.setdefault(name, base)
    calls = {
        name: set(_OWN_CALL.findall(base.unit.text_of(base.methods[name])))
        for name, base in inherited.items()
    }
    found: set[str] = set()
    while more := {name for name in calls.keys() - found if not calls[name].isdisjoint(reached)}:
        found |= more
        reached |= more
    inner = set(_OWN_CALL.findall(unit.text_of(cls.node)))
    inner = inner.union(*(calls[name] - {name} for name in found))
    instance = Instance(cls, "self")
    for name in inherited:
        if name in found - inner and name != "__init__":
            owner = cls if name in cls.methods else inherited[name]
            yield Function(owner.methods[name], owner.unit, bound=instance, owner=owner), cls
