"""ZG504: a tally of micro-batches that no window sets back.

`n += 1` in each round and `if n == k: opt.step()`: after the first window n has passed k for good.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.endings import leaves
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.sizes import is_of_a_window
from zerograd.static.engine.text.stores import statements_in, targets
from zerograd.static.engine.text.words import is_optimizer_name, is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_FAULTS = {
    ast.Eq: "is true once only: {name} is never set back",
    ast.GtE: "is true in every iteration after the first window: {name} is never set back",
}


def never_set_back(program: Program) -> Iterator[Finding]:
    """Yield the guards of windows whose tally goes on counting."""
    unit = program.main
    if "+= 1" not in unit.source.text or ".backward(" not in unit.source.text:
        return
    for loop in unit.loops():
        if not unit.mentions(loop, ".backward("):
            continue
        for guard in loop.body:
            if not isinstance(guard, ast.If) or guard.orelse or leaves(unit, guard.body):
                continue
            step = step_in(guard)
            if step and _is_overrun(unit, loop, guard):
                yield _finding(program, guard.test, step)


def step_in(guard: ast.If) -> str:
    """Return whose step stands in the branch, if what it uses is cleared there as well."""
    calls = [
        path_of(each.value.func)
        for each in guard.body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)
    ]
    if not any(each.endswith(".zero_grad") for each in calls):
        return ""
    owners = [each.removesuffix(".step") for each in calls if each.endswith(".step")]
    named = [each for each in owners if is_optimizer_name(each) or is_scaler_name(each)]
    return named[0] if named else ""


def _is_overrun(unit: Unit, loop: ast.For | ast.While, guard: ast.If) -> bool:
    """Does each round count on and go back, with a tally of a window that nothing sets back?"""
    test = guard.test
    if not isinstance(test, ast.Compare) or type(test.ops[0]) not in _FAULTS:
        return False
    name, size = path_of(test.left), unit.source.segment(test.comparators[0])
    if not name or not is_of_a_window(unit.text_of(loop), size, name):
        return False
    counts = [each for each in loop.body if isinstance(each, ast.AugAssign)]
    if [path_of(each.target) for each in counts].count(name) != 1:
        return False
    if not goes_plainly_back(unit, loop):
        return False
    within = [path_of(each) for each in targets(loop.body)]
    if within.count(name) != 1:
        return False  # somewhere in the loop it is given something else
    return "." not in name or not _is_stored_elsewhere(unit, name)


def goes_plainly_back(unit: Unit, loop: ast.For | ast.While) -> bool:
    """Does each round go backward, whatever its guards say?"""
    plain = [each for each in loop.body if isinstance(each, ast.Expr)]
    return any(".backward(" in unit.text_of(each) for each in plain)


def _is_stored_elsewhere(unit: Unit, name: str) -> bool:
    """Does a method, not the constructor, give the attribute another value?"""
    attribute = name.rsplit(".", 1)[-1]
    return any(
        isinstance(part, ast.Assign)
        and any(path_of(each).endswith(f".{attribute}") for each in targets([part]))
        for function in unit.functions_saying(f".{attribute}")
        if function.name != "__init__"
        for part in statements_in(function.body)
    )


def _finding(program: Program, test: ast.expr, owner: str) -> Finding:
    rule = BY_CODE["ZG504"]
    source = program.main.source
    assert isinstance(test, ast.Compare)
    name = path_of(test.left)
    names = {
        "condition": source.segment(test),
        "owner": owner,
        "fault": _FAULTS[type(test.ops[0])].format(name=name),
    }
    return Finding(
        rule=rule,
        spot=source.spot(test),
        message=rule.summary.format_map(names),
        advice=f"set it back after the step: `{name} = 0`",
        owner=owner,
    )
