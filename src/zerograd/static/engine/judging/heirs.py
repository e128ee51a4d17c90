"""Methods that a loop calls and that heirs are to write: what they do is not seen here."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.endings import is_empty
from zerograd.static.engine.text.stores import statements_in

if TYPE_CHECKING:
    from zerograd.static.engine.identity.ir import Loop
    from zerograd.static.engine.identity.unit import Unit


def is_left_to_heirs(unit: Unit, loop: Loop | None) -> bool:
    """Does a method that nobody wrote in this file take the batch, and give something back?

    `batch = self.process(batch)`: the heir that writes it may go back in it. One that is told
    only (`self.log(loss)`) is left alone: it belongs to a base class more often.
    """
    node = loop.node if loop is not None else None
    if not isinstance(node, ast.For | ast.AsyncFor):
        return False
    taken = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
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


def _takes(call: ast.Call, names: set[str]) -> bool:
    given = (*call.args, *(word.value for word in call.keywords))
    return any(isinstance(each, ast.Name) and each.id in names for each in given)


def _is_unwritten(unit: Unit, name: str) -> bool:
    """Is it neither a method with a body here nor kept under that name (`self.model = model`)?"""
    written = [each for each in unit.every_function() if each.name == name]
    if written:
        return all(is_empty(each) for each in written)
    return f"self.{name} =" not in unit.source.text
