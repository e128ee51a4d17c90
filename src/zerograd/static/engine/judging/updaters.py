"""Who else may update a loss scaler: base classes, callers, the rest of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.text.classes import FunctionNode

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.reading.program import Program

_UPDATES = re.compile(r"scaler\w*\.update\s*\(")
_STEPS = re.compile(r"scaler\w*\.step\s*\(")
_OTHERS = re.compile(r"scaler\w*\.update\s*\(|\.update\s*\(\s*\{")  # no update of a trainer
_CALLED = re.compile(r"(?<!def )\b([A-Za-z_]\w*)\s*\(")


def may_be_updated_outside(step: Happening, buckets: Buckets, program: Program) -> bool:
    """Is it called from a loop elsewhere, and may that update the scaler for it?

    A base class, which calls it once a batch, may update the scaler of all its heirs. A function
    that steps by itself updates for itself, unless it calls this one.
    """
    if step.loop is None or not step.loop.pseudo:
        return False
    if any(each.kind is EventKind.SCALER_UPDATE for each in buckets.happenings):
        return False
    functions = program.main.every_function()
    within = [each for each in functions if _is_in(step, program.main, each)]
    called = {each.name for each in within or functions}
    for unit in program.units():
        if not _UPDATES.search(unit.source.text):
            continue
        for text in _texts(unit, within if unit is program.main else []):
            alone = _STEPS.search(text) and called.isdisjoint(
                _CALLED.findall(_OTHERS.sub("", text))
            )
            if _UPDATES.search(text) and not alone:
                return True
    project, source = program.project, program.main.source
    return project is not None and any(
        project.around.is_updated_by_callers(source, n) for n in called
    )


def _is_in(step: Happening, unit: Unit, function: FunctionNode) -> bool:
    last = function.end_lineno or function.lineno
    return step.unit is unit and function.lineno <= step.spot.line <= last


def _texts(unit: Unit, without: list[FunctionNode]) -> Iterator[str]:
    """Yield the texts of the functions of a module, but for some, and then of the rest of it."""
    rest = list(unit.source.lines)
    for each in unit.every_function():
        if each not in without:
            yield unit.text_of(each)
        last = each.end_lineno or each.lineno
        rest[each.lineno - 1 : last] = [""] * (last - each.lineno + 1)
    yield "\n".join(rest)
