"""Methods that a loop calls and that heirs are to write: what they do is not seen here."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.endings import is_empty
from zerograd.static.engine.text.parts import names_below
from zerograd.static.engine.text.stores import statements_in

if TYPE_CHECKING:
    from zerograd.static.engine.identity.ir import Happening, Loop
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program
    from zerograd.static.engine.text.classes import ClassUnit, FunctionNode

_OWN_CALL = re.compile(r"\bself\.(\w+)\s*\(")


def is_left_to_heirs(unit: Unit, loop: Loop | None) -> bool:
    """Does a method that nobody wrote in this file take the batch, and give something back?

    `batch = self.process(batch)`: the heir that writes it may go back in it. One that is told
    only (`self.log(loss)`) is left alone: it belongs to a base class more often.
    """
    node = loop.node if loop is not None else None
    if not isinstance(node, ast.For | ast.AsyncFor):
        return False
    taken = set(names_below(node.target))
    for each in statements_in(node.body):
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Call):
            continue
        called = each.value.func
        if (
            isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and called.value.id == "self"
            and _takes(each.value, taken)
            and _is_unwritten(unit, called.attr)
        ):
            return True
    return False


def asks_heirs(program: Program, clear: Happening) -> bool:
    """Does the method of a clear, or the loop around it, call one of the object that is empty yet?

    An heir that writes it may step there.
    """
    unit = clear.unit
    around = unit.functions_around(clear.spot.line)
    owners = [each for each in unit.classes.values() if around and _has(each, around[-1])]
    if not owners:
        return False
    loop = clear.loop.text if clear.loop is not None else ""
    called = set(_OWN_CALL.findall(f"{unit.text_of(around[-1])}\n{loop}"))
    written = [each.methods for each in program.lineage(owners[0])]
    return any(
        all(is_empty(methods[name]) for methods in written if name in methods)
        for name in called
        if any(name in methods for methods in written)
    )


def _has(cls: ClassUnit, method: FunctionNode) -> bool:
    return any(each is method for each in cls.methods.values())


def _takes(call: ast.Call, names: set[str]) -> bool:
    given = (*call.args, *(word.value for word in call.keywords))
    return any(isinstance(each, ast.Name) and each.id in names for each in given)


def _is_unwritten(unit: Unit, name: str) -> bool:
    """Is it neither a method with a body here nor kept under that name (`self.model = model`)?"""
    written = [each for each in unit.every_function() if each.name == name]
    if written:
        return all(is_empty(each) for each in written)
    return f"self.{name} =" not in unit.source.text
