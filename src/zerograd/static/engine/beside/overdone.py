"""ZG305: a scaler that is updated where nothing was unscaled or stepped since its last update.

torch raises there. A second update in one round is such, and so is one under a guard that skips
the step of a bad batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.text.raised import raised_in

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

MESSAGE = "{scaler}.update() comes where no optimizer was stepped or unscaled since the last update"
ADVICE = "remove it: {scaler}.update() comes once, after the last {scaler}.step() of the iteration"


def updated_for_nothing(program: Program) -> Iterator[Finding]:
    """Yield such updates, where that is so on every path."""
    unit = program.main
    source = unit.source
    if ".scale(" not in source.text or source.text.count(".update()") < 2:
        return  # most files
    for function in (*unit.functions_saying(".update()"), source.tree):
        for each in raised_in(function, source):
            func = each.call.func
            if each.always and isinstance(func, ast.Attribute) and func.attr == "update":
                yield _finding(program, source.segment(func.value), each.call)


def _finding(program: Program, scaler: str, call: ast.Call) -> Finding:
    source = program.main.source
    told = "finds nothing that it could look at: torch raises an AssertionError"
    return Finding(
        rule=BY_CODE["ZG305"],
        spot=source.spot(call),
        message=MESSAGE.format(scaler=scaler),
        advice=ADVICE.format(scaler=scaler),
        owner="the optimizer",
        trail=(TrailStep(source.spot(call), told, source.segment(call)),),
    )
