"""ZG104: a function that wipes a gradient before it has made one.

`x.grad.zero_()` first, then the backward that fills it: on the first call there is none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.classes import FunctionNode

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_WIPES = re.compile(r"\.grad(\.data)?\.zero_\(\)")


def wiped_before_filled(program: Program) -> Iterator[Finding]:
    """Yield the unguarded wipes at the head of a function that goes backward after them."""
    unit = program.main
    if not _WIPES.search(unit.source.text):
        return
    for function in unit.functions_saying(".backward("):
        if _is_called_after_one(program, function):
            continue
        for at, part in enumerate(function.body):
            owner = _wiped(part)
            if not owner:
                continue
            told = (
                isinstance(function.body[0], ast.Expr) and ast.get_docstring(function) is not None
            )
            before = "\n".join(unit.text_of(each) for each in function.body[told:at])
            after = "\n".join(unit.text_of(each) for each in function.body[at + 1 :])
            if _is_first(unit.source.text, owner, before, after):
                yield _finding(program, owner, part)


def _is_called_after_one(program: Program, function: FunctionNode) -> bool:
    """Does what calls it go backward too? Then the gradient may be there from before."""
    unit = program.main
    called = re.compile(rf"\b{re.escape(function.name)}\s*\(")
    return any(
        other is not function and called.search(unit.text_of(other)) is not None
        for other in unit.functions_saying(".backward(")
    )


def _wiped(part: ast.stmt) -> str:
    """Return whose gradient a statement wipes: an argument's, or an attribute's."""
    if not isinstance(part, ast.Expr) or not isinstance(part.value, ast.Call):
        return ""
    owner, dot, rest = path_of(part.value.func).partition(".grad")
    wipes = bool(dot) and rest in (".zero_", ".data.zero_")
    return owner if wipes and "[" not in owner else ""


def _is_first(text: str, owner: str, before: str, after: str) -> bool:
    """Is nothing there yet, and is what the backward fills read afterwards?"""
    if "backward" in before or re.search(rf"{re.escape(owner)}\b", before):
        return False
    if re.search(rf"{re.escape(owner)}\.grad\s*=[^=]", text):
        return False  # somewhere it is put there
    filled = after.partition(".backward(")[2]
    return f"{owner}.grad" in filled


def _finding(program: Program, owner: str, part: ast.stmt) -> Finding:
    rule = BY_CODE["ZG104"]
    assert isinstance(part, ast.Expr)
    names = {"owner": owner}
    return Finding(
        rule=rule,
        spot=program.main.source.spot(part.value),
        message=rule.summary.format_map(names),
        advice=rule.advice.format_map(names),
        owner=owner,
    )
