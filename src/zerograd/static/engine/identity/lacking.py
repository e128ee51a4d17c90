"""Functions that work with a scaler or without one, and that nobody here hands one.

What they do with it is read as well: another file's caller has one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.words import is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.definitions import Function
    from zerograd.static.engine.reading.program import Program

OF_SCALERS = frozenset(("ZG301", "ZG303", "ZG305"))  # who has the scaler may update it as well


def lacks_its_scaler(program: Program, function: Function) -> bool:
    """May it be handed a scaler, which steps in it, and has no path come to that step?"""
    node, unit = function.node, program.main
    assert isinstance(node, FunctionNode)
    if not any(unit.mentions(node, f"{name}.step(") for name in _scalers(node.args)):
        return False
    last = node.end_lineno or node.lineno
    return not any(
        passed and spot.path == unit.source.path and node.lineno <= spot.line <= last
        for spot, passed in program.passed.items()
    )


def _scalers(parameters: ast.arguments) -> list[str]:
    """Return the parameters for scalers that are None unless they are handed in."""
    names = [*parameters.posonlyargs, *parameters.args]
    given = list(zip(reversed(names), reversed(parameters.defaults), strict=False))
    given += [
        (each, default)
        for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if default is not None
    ]
    return [
        each.arg
        for each, default in given
        if isinstance(default, ast.Constant) and default.value is None and is_scaler_name(each.arg)
    ]
