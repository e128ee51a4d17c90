"""ZG302: a scaler that is made, scales and steps in one file, and that nothing there updates.

A wrapper's `step()` is called by a loop elsewhere, which knows of no scaler to update.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import is_scaler_name

if TYPE_CHECKING:
    from zerograd.lifecycle.events import Spot
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_OWN = frozenset(("scale", "step", "unscale_", "unscale"))
_HARMLESS = frozenset(("get_scale", "state_dict", "load_state_dict", "is_enabled"))


def unupdated(program: Program) -> Iterator[Finding]:
    """Yield the steps of such scalers, where nobody else is handed the scaler."""
    source = program.main.source
    if "GradScaler(" not in source.text or ".update(" in source.text:
        return  # most files; whatever it is that is updated, under another name it may be this
    uses: dict[str, list[tuple[str, ast.AST]]] = {}
    made: set[str] = set()
    for node in parts_below(source.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _makes_scaler(node.value):
            made.add(path_of(node.targets[0]))
        elif isinstance(node, ast.Attribute) and is_scaler_name(path_of(node.value)):
            uses.setdefault(path_of(node.value), []).append((node.attr, node))
    for path in made:
        names = {name for name, _ in uses.get(path, ())}
        if {"scale", "step"} <= names and names <= _OWN | _HARMLESS:
            steps = [
                call
                for call in parts_below(source.tree)
                if isinstance(call, ast.Call)
                and path_of(call.func) == f"{path}.step"
                and call.args
                and program.passed.get(source.spot(call), True)  # else no path comes there
            ]
            for call in _first_of_each_function(source.tree, steps):
                yield step_unupdated(program, path, call)


def _first_of_each_function(tree: ast.AST, calls: list[ast.Call]) -> list[ast.Call]:
    """Return one call a function: one update is due for all optimizers that are stepped there."""
    functions = [node for node in parts_below(tree) if isinstance(node, FunctionNode)]
    first: dict[int, ast.Call] = {}
    for call in sorted(calls, key=lambda each: (each.lineno, each.col_offset)):
        around = [
            each for each in functions if each.lineno <= call.lineno <= (each.end_lineno or 0)
        ]
        first.setdefault(max((each.lineno for each in around), default=0), call)
    return list(first.values())


def _makes_scaler(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and path_of(value.func).endswith("GradScaler")


def step_unupdated(program: Program, scaler: str, call: ast.Call) -> Finding:
    """Tell of the step through a scaler that nothing updates after it."""
    rule = BY_CODE["ZG302"]
    owner = path_of(call.args[0]) or "optimizer"
    names = {"scaler": scaler, "call": "step", "owner": owner}
    return Finding(
        rule=rule,
        spot=program.main.source.spot(call),
        message=rule.summary.format_map(names),
        advice=rule.advice.format_map(names),
        owner=owner,
    )


def told_at_the_first(program: Program, findings: list[Finding]) -> list[Finding]:
    """Leave out the later steps through a scaler that the same missing update would follow.

    One update behind the last of them mends all. It is the first that raises in the next round.
    """
    told = [each for each in findings if each.rule.code == "ZG302" and each.certain]
    if len(told) < 2:
        return findings  # most files
    calls = {
        program.main.source.spot(each): each
        for each in ast.walk(program.main.source.tree)
        if isinstance(each, ast.Call) and path_of(each.func).endswith(".step") and each.args
    }
    first: dict[tuple[str, int], int] = {}
    left_out: set[Spot] = set()
    for each in sorted(told, key=lambda one: one.spot.line):
        call = calls.get(each.spot)
        if call is None:
            continue  # an unscale, or in another file
        scaler = path_of(call.func).removesuffix(".step")
        place = (scaler, _block_around(program.main, call.lineno))
        since = first.setdefault(place, call.lineno)
        between = program.main.source.lines[since - 1 : call.lineno]
        if since < call.lineno and not any(f"{scaler}.update(" in row for row in between):
            left_out.add(each.spot)
    return [each for each in findings if each.rule.code != "ZG302" or each.spot not in left_out]


def _block_around(unit: Unit, line: int) -> int:
    """Return where the innermost loop around a line begins, or the function."""
    around = [
        each.lineno
        for each in (*unit.loops(), *unit.every_function())
        if each.lineno <= line <= (each.end_lineno or 0)
    ]
    return max(around, default=0)
