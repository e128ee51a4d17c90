"""ZG302: the step for what is left of an epoch, after which nothing updates the scaler.

The loop before it updates after each of its steps. When the function is called for the next
epoch, torch raises at `unscale_`, or the scaler goes on with what this step has found.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.beside.unupdated import step_unupdated
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.words import is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_UPDATES = re.compile(r"scaler\w*\.update\s*\(")


def tail_unupdated(program: Program) -> Iterator[Finding]:
    """Yield such steps of the functions that a loop of this file calls again and again."""
    unit = program.main
    text = unit.source.text
    if "scaler" not in text or ".update" not in text or not _UPDATES.search(text):
        return  # most files
    for function in unit.functions_saying(".step("):
        own = unit.text_of(function)
        if own.count(".step(") < 2 or not _UPDATES.search(own):
            continue
        steps = list(_steps(function.body, ()))
        for call, after in steps:
            scaler = path_of(call.func).rpartition(".")[0]
            left = _left(after)
            others = sum(path_of(each.func) == path_of(call.func) for each, _ in steps)
            if (
                left is not None
                and others > 1
                and f"{scaler}.update(" in own
                and not any(scaler in unit.text_of(each) for each in left)
                and _is_called_again(unit, function)
                and not _is_updated_elsewhere(program, function)
            ):
                yield step_unupdated(program, scaler, call)


Place = tuple[ast.AST, list[ast.stmt]]  # what stands around a block, and what comes after in it


def _steps(
    body: list[ast.stmt], around: tuple[Place, ...], holder: ast.AST | None = None
) -> Iterator[tuple[ast.Call, tuple[Place, ...]]]:
    """Yield the steps through a scaler, each with what comes after it, from the inside out."""
    for at, each in enumerate(body):
        if isinstance(each, FunctionNode | ast.ClassDef):
            continue
        here = ((holder or each, body[at + 1 :]), *around)
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
            path, _, name = path_of(each.value.func).rpartition(".")
            if name == "step" and is_scaler_name(path) and len(each.value.args) == 1:
                yield each.value, here
        for name in ("body", "orelse"):
            yield from _steps(getattr(each, name, None) or [], here, each)
        for handler in getattr(each, "handlers", ()):
            yield from _steps(handler.body, here, handler)


def _left(after: tuple[Place, ...]) -> list[ast.stmt] | None:
    """Return all that may still run in the function after a step; None where a round follows."""
    found: list[ast.stmt] = []
    leaving = False  # a break was met: nothing runs until the loop is left
    for at, (holder, rest) in enumerate(after):
        if not leaving:
            for each in rest:
                if isinstance(each, ast.Return):
                    return found
                if isinstance(each, ast.Continue | ast.Raise):
                    return None
                if isinstance(each, ast.Break):
                    leaving = True
                    break
                found.append(each)
        if isinstance(holder, _LOOPS) and at < len(after) - 1:
            if not leaving:
                return None
            leaving = False
        if isinstance(holder, ast.Try):
            found.extend(holder.finalbody)
    return found


def _is_called_again(unit: Unit, function: FunctionNode) -> bool:
    """Does a loop elsewhere in the file call it, and update nothing itself?"""
    called = re.compile(rf"(?<!def )\b{re.escape(function.name)}\s*\(")
    return any(
        isinstance(each, _LOOPS)
        and not function.lineno <= each.lineno <= (function.end_lineno or 0)
        and called.search(unit.text_of(each)) is not None
        and not _UPDATES.search(unit.text_of(each))
        for each in unit.statements()
    )


def _is_updated_elsewhere(program: Program, function: FunctionNode) -> bool:
    """May whoever calls it update the scaler after it?"""
    project, unit = program.project, program.main
    around = [
        each
        for each in unit.functions_saying(f"{function.name}(")
        if each is not function and not each.lineno <= function.lineno <= (each.end_lineno or 0)
    ]
    if any(_UPDATES.search(unit.text_of(each)) for each in around):
        return True
    return project is not None and project.around.is_updated_by_callers(unit.source, function.name)
