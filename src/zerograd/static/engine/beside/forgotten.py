"""ZG203: an optimizer that is built over a network, which is trained without it."""

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
from zerograd.static.engine.judging.origins import Assignments
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import is_optimizer_class, is_scaler_name, is_scheduler_name

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_STEPS = re.compile(r"([\w.]+)\.step\w*\(\s*([\w.]*)")
# Who looks at gradients, measures, or has others train, may build one for other reasons.
_OTHERWISE = re.compile(
    r"\.grad\b|timeit|profil|(?<!cudnn\.)benchmark|Trainer\b|\.fit\(|deepspeed|def test_"
)


def forgotten(program: Program) -> Iterator[Finding]:
    """Yield the clear of a network whose loss goes backward, where nothing uses its optimizer.

    `net.zero_grad()` clears for an optimizer that is built over `net`, and then left alone.
    """
    unit = program.main
    text = unit.source.text
    if ".zero_grad(" not in text or ".backward(" not in text:
        return
    statements = [each for each in unit.statements() if isinstance(each, ast.Assign)]
    left = [
        each
        for each in statements
        if _network(each.value) and not any(unit.places.coded(f"{path_of(each.targets[0])}.step"))
    ]
    if not left:
        return  # most files
    built = [each for each in statements if is_optimizer_class(_maker(each.value))]
    if not _steps_are_of(unit, built) or _OTHERWISE.search(text):
        return
    for each in left:
        if each in built:
            yield from _trained_without(program, each, built)


def _steps_are_of(unit: Unit, built: list[ast.Assign]) -> bool:
    """Is it known of each step whose it is: of one of these, by a scaler too, or a scheduler's?"""
    names = {path_of(each.targets[0]) for each in built}
    for line in map(unit.places.row, unit.places.rows(".step")):
        steps = _STEPS.findall(line)
        if len(steps) < line.count(".step("):
            return False  # an item's: `optimizers[0].step()`
        for owner, given in steps:
            known = given if is_scaler_name(owner) else owner
            if known not in names and not is_scheduler_name(owner):
                return False
    return True


def _trained_without(
    program: Program, made: ast.Assign, built: list[ast.Assign]
) -> Iterator[Finding]:
    """Yield the clear of the network that an optimizer is built over, if nothing else uses it."""
    unit = program.main
    name, network = path_of(made.targets[0]), _network(made.value)
    if not name.isidentifier() or not network:
        return
    if any(_may_hold(unit, each, network) for each in built if each is not made):
        return  # left over, where another one has these weights
    parts = parts_below(unit.source.tree)
    if any(is_used(each, {name}, set(), trained=True) for each in parts):
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


def _may_hold(unit: Unit, made: ast.Assign, network: str) -> bool:
    """May an optimizer hold the network's weights, under whatever name it is given them?"""
    around = unit.functions_around(made.lineno)[-1:]
    scope = (around[0].lineno, around[0].end_lineno or 0) if around else None
    assignments = Assignments(unit.source.tree, scope)
    given = made.value.args[0] if isinstance(made.value, ast.Call) and made.value.args else None
    if given is None:
        return True
    unknown = path_of(given) and not assignments.before(path_of(given), made.lineno)
    return bool(unknown) or network in map(path_of, assignments.behind(given))


def _maker(value: ast.AST) -> str:
    return path_of(value.func) if isinstance(value, ast.Call) else ""


def _network(value: ast.AST) -> str:
    """Return net of `SGD(net.parameters(), …)`."""
    first = value.args[0] if isinstance(value, ast.Call) and value.args else None
    func = first.func if isinstance(first, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "parameters":
        return ""
    return path_of(func.value)


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
