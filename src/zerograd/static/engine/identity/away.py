"""Calls of a file that come to events in other modules of the project.

`main()` may do no more than make an optimizer, and call in a loop what stands elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Class, Function, Namespace
from zerograd.static.engine.identity.values import Value
from zerograd.static.engine.text.leading import GRADIENT_WORDS

if TYPE_CHECKING:
    from zerograd.static.engine.identity.lineage import Lineage
    from zerograd.static.engine.text.classes import ClassUnit


def names_leading_away(program: Lineage) -> Iterator[str]:
    """Yield the names by which the main file calls what does something to gradients elsewhere."""
    unit = program.main
    text = unit.source.text
    for name in unit.imports:
        # The text is searched last: most imports are none of the project's.
        if program.may_be_of_project(unit, name) and (f"{name}(" in text or f"{name}." in text):
            yield from (f"{name}{path}" for path in _leading(program, program.imported(unit, name)))
    for each in program.starred(unit):
        yield from (path.removeprefix(".") for path in _leading(program, each))
    for name, cls in unit.classes.items():
        if cls.bases and _acts(program, cls):
            yield name  # it inherits what acts


def _leading(program: Lineage, value: Value) -> Iterator[str]:
    """Yield what follows an imported name in calls that come to events, or make what may."""
    if isinstance(value, Namespace):
        unit = value.unit
        functions = unit.functions.items()
        yield from (f".{name}" for name, each in functions if unit.has_events(each, GRADIENT_WORDS))
        yield from (f".{name}" for name, each in unit.classes.items() if _acts(program, each))
    elif isinstance(value, Function):
        if value.unit is not program.main and value.unit.has_events(value.node, GRADIENT_WORDS):
            yield ""
    elif isinstance(value, Class) and _acts(program, value.unit):
        yield ""


def _acts(program: Lineage, cls: ClassUnit) -> bool:
    """Does a class, or one above it, do something to gradients in another file than the main one?

    What networks do is asked of them elsewhere.
    """
    return not program.is_module(cls) and any(
        each.unit.has_events(method, GRADIENT_WORDS)
        for each in program.lineage(cls)
        if each.unit is not program.main
        for method in each.methods.values()
    )
