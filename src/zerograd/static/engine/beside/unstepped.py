"""ZG305: a scaler that is updated right after a backward, in a function that does not step.

Whoever steps comes too late: the update has taken another scale, or raised, as nothing was
unscaled for it to look at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

MESSAGE = "{scaler}.update() comes right after backward(), before any step"

_ASKED = frozenset(("get_scale", "is_enabled", "item"))  # calls that do nothing between the two


def updated_before_any_step(program: Program) -> Iterator[Finding]:
    """Yield the updates that follow a backward at once, where the function steps nothing."""
    unit = program.main
    if ".scale(" not in unit.source.text:
        return  # most files
    for function in unit.functions_saying(".update("):
        text = unit.text_of(function)
        if ".step(" in text or "unscale" in text:
            continue
        for each in parts_below(function):
            for name in ("body", "orelse"):
                block = getattr(each, name, None)
                if isinstance(block, list):
                    yield from _in(program, block)


def _in(program: Program, block: list[ast.stmt]) -> Iterator[Finding]:
    scaler, filled = "", None
    for each in block:
        call = each.value if isinstance(each, ast.Expr) else None
        scaled = _scaler_of(call)
        if scaled:
            scaler, filled = scaled, call
        elif scaler and isinstance(call, ast.Call) and path_of(call.func) == f"{scaler}.update":
            if filled is not None and not call.args and not call.keywords:
                yield _finding(program, scaler, filled, call)
            scaler = ""
        elif not _does_nothing(each):
            scaler = ""


def _scaler_of(call: ast.expr | None) -> str:
    """Return `scaler` of `scaler.scale(loss).backward()`."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    inner = call.func.value
    if call.func.attr != "backward" or not isinstance(inner, ast.Call):
        return ""
    path, _, name = path_of(inner.func).rpartition(".")
    return path if name == "scale" and is_scaler_name(path) else ""


def _does_nothing(statement: ast.stmt) -> bool:
    """Does it only ask for the scale, or keep a number?"""
    return isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) and all(
        isinstance(each.func, ast.Attribute) and each.func.attr in _ASKED
        for each in parts_below(statement)
        if isinstance(each, ast.Call)
    )


def _finding(program: Program, scaler: str, filled: ast.expr, call: ast.Call) -> Finding:
    rule, source = BY_CODE["ZG305"], program.main.source
    stations = (
        (filled, "fills the gradients, multiplied by the scale"),
        (call, "updates the scaler, which no step has told anything"),
    )
    return Finding(
        rule=rule,
        spot=source.spot(call),
        message=MESSAGE.format(scaler=scaler),
        advice=rule.advice.format_map({"scaler": scaler, "owner": "optimizer"}),
        owner="the optimizer",
        trail=tuple(TrailStep(source.spot(n), text, source.segment(n)) for n, text in stations),
    )
