"""ZG203: the one optimizer of a scope, built over a network that is trained without it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.judging.handovers import is_used
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import is_optimizer_class, is_scheduler_name

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_STEPS = re.compile(r"(\w+)\.step\w*\(")
# Who looks at gradients, measures, or has others train, may build one for other reasons.
_OTHERWISE = re.compile(r"\.grad\b|timeit|profil|benchmark|Trainer\b|\.fit\(|deepspeed|def test_")


def forgotten(program: Program) -> Iterator[Finding]:
    """Yield the clear of a network whose loss goes backward, where nothing uses its optimizer.

    `net.zero_grad()` clears for an optimizer that is built over `net`, and then left alone.
    """
    unit = program.main
    text = unit.source.text
    if ".zero_grad(" not in text or ".backward(" not in text:
        return
    stepping = map(unit.places.row, unit.places.rows(".step"))
    if any(not is_scheduler_name(name) for line in stepping for name in _STEPS.findall(line)):
        return  # most files
    if _OTHERWISE.search(text):
        return
    built = [
        each
        for each in unit.statements()
        if isinstance(each, ast.Assign) and is_optimizer_class(_maker(each.value))
    ]
    if len(built) != 1 or not isinstance(built[0].targets[0], ast.Name):
        return
    name, network = built[0].targets[0].id, _network(built[0].value)
    if not network or any(is_used(each, {name}, set()) for each in parts_below(unit.source.tree)):
        return
    for clear in _cleared_and_filled(unit, network):
        rule = BY_CODE["ZG203"]
        yield Finding(
            rule=rule,
            spot=unit.source.spot(clear),
            message=f"{name} is built over {network}, which is cleared and filled, but not stepped",
            advice=rule.advice.format_map({"owner": name}),
            owner=name,
        )
        return


def _maker(value: ast.AST) -> str:
    return path_of(value.func) if isinstance(value, ast.Call) else ""


def _network(value: ast.AST) -> str:
    """Return net of `SGD(net.parameters(), …)`."""
    first = value.args[0] if isinstance(value, ast.Call) and value.args else None
    path = path_of(first.func) if isinstance(first, ast.Call) else ""
    return path.removesuffix(".parameters") if path.endswith(".parameters") else ""


def _cleared_and_filled(unit: Unit, network: str) -> Iterator[ast.Call]:
    """Yield the clears of a network in a loop that also goes backward, in one function."""
    for loop in unit.statements():
        if not isinstance(loop, ast.For | ast.While | ast.AsyncFor):
            continue
        parts = unit.parts_of(loop)
        if any(isinstance(each, FunctionNode) for each in parts):
            continue
        calls = [each for each in parts if isinstance(each, ast.Call)]
        if any(path_of(each.func).endswith(".backward") for each in calls):
            yield from (each for each in calls if path_of(each.func) == f"{network}.zero_grad")
