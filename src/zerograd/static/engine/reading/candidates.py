"""The functions that reading may begin with, if nothing here calls them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.text.classes import ClassUnit, FunctionNode
from zerograd.static.engine.text.leading import EVENT_WORDS, GRADIENT_WORDS

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

Candidate = tuple[Function, ClassUnit | None]  # and the class that it is a method of

_SPAWNED = re.compile(r"\b(?:spawn\(\s*(?:fn\s*=\s*)?|target=)(\w+)\s*[,)]")


def candidates(program: Program) -> list[Candidate]:
    """Return the functions and methods with events, in the order of the file.

    What only freezes is nobody's training: it counts where one that trains calls it.
    """
    unit = program.main
    found: list[Candidate] = []
    for node in unit.functions.values():
        if unit.has_events(node, GRADIENT_WORDS):
            found.append((Function(node, unit), None))
    for cls in unit.classes.values():
        found += methods_with_events(program, cls)
    return found


def methods_with_events(program: Program, cls: ClassUnit) -> list[Candidate]:
    """Return the methods of a class with events."""
    unit = program.main
    if not unit.has_events(cls.node, GRADIENT_WORDS) or program.is_optimizer(cls):
        return []
    instance = Instance(cls, "self")
    return [
        (Function(method, unit, bound=instance, owner=cls), cls)
        for method in cls.methods.values()
        if method.name != "__init__" and unit.has_events(method, _words_of(method.name))
    ]


def _words_of(name: str) -> tuple[str, ...]:
    """Return what tells events of a method: one that freezes may set what another one trains.

    A test has its object for itself.
    """
    return GRADIENT_WORDS if name.lstrip("_").startswith("test") else EVENT_WORDS


def is_called_by_name(program: Program, node: ast.AST) -> bool:
    assert isinstance(node, FunctionNode)
    text, name = program.main.source.text, node.name
    times = 0
    at = text.find(name)
    while at >= 0 and times < 2:
        after = at + len(name)
        whole = not (text[at - 1 : at].isalnum() or text[at - 1 : at] == "_")
        times += whole and text[after : after + 80].lstrip().startswith("(")
        at = text.find(name, after)
    return times > 1


def spawned_in(unit: Unit) -> frozenset[str]:
    """Return what processes begin with: `spawn(train, …)`, `Process(target=train)`."""
    text = unit.source.text
    if "spawn(" not in text and "target=" not in text:
        return frozenset()  # most files
    return frozenset(_SPAWNED.findall(text))
