"""ZG504: guards of windows that count nothing: of a counter that stands still, or of a quotient.

`seen % 4 == 0` where no round counts `seen` on, or each round begins with `seen = 0`; and
`(i + 1) // 4 == 0`, which holds in the first window alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.beside.overrun import goes_plainly_back, step_in
from zerograd.static.engine.text import guards
from zerograd.static.engine.text.parts import names_below
from zerograd.static.engine.text.remainders import asks_for, is_modulo
from zerograd.static.engine.text.sizes import is_of_a_window
from zerograd.static.engine.text.stores import names_stored, statements_in, targets

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_QUOTIENTS = {
    ast.FloorDiv: "asks for a quotient, which is zero in the first window alone",
    ast.Div: "asks for a quotient, which is zero at the very first count or never",
}
Fault = tuple[str, str]  # what is wrong with the guard, and what to do


def guarded_by_no_count(program: Program) -> Iterator[Finding]:
    """Yield the guards around a step and its clear that no counting makes true once in a window."""
    unit = program.main
    if ".backward(" not in unit.source.text or ".zero_grad(" not in unit.source.text:
        return
    for loop in unit.loops():
        for guard in loop.body:
            if not isinstance(guard, ast.If) or guard.orelse:
                continue
            counted = _counted(guard.test)
            step = step_in(guard) if counted is not None else ""
            if not step or not goes_plainly_back(unit, loop):
                continue
            assert counted is not None
            fault = _by_quotient(unit, loop, guard, counted) or _standing(
                unit, loop, guard, counted
            )
            if fault is not None:
                yield _finding(program, guard.test, step, fault)


def _counted(test: ast.expr) -> ast.BinOp | None:
    """Return the remainder or quotient that a test asks for."""
    side = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else test
    if not isinstance(side, ast.BinOp):
        return None
    return side if is_modulo(side) or (type(side.op) in _QUOTIENTS and side is not test) else None


def _by_quotient(
    unit: Unit, loop: ast.For | ast.While, guard: ast.If, counted: ast.BinOp
) -> Fault | None:
    """Is it `(i + 1) // 4 == 0`, of what each round counts on and a size that none changes?"""
    if type(counted.op) not in _QUOTIENTS or not asks_for(guard.test, 0):
        return None
    changed = names_stored([loop])
    above, below = set(names_below(counted.left)), set(names_below(counted.right))
    if len(above) != 1 or not above <= changed or not below.isdisjoint(changed):
        return None
    right = f"{unit.source.segment(counted.left)} % {unit.source.segment(counted.right)} == 0"
    return _QUOTIENTS[type(counted.op)], f"write `{right}`"


def _standing(
    unit: Unit, loop: ast.For | ast.While, guard: ast.If, counted: ast.BinOp
) -> Fault | None:
    """Is what it counts by one number in every round, and so the guard never or always true?"""
    if not is_modulo(counted) or len(set(names_below(counted.left))) != 1:
        return None
    counter = next(each for each in ast.walk(counted.left) if isinstance(each, ast.Name))
    name = counter.id
    inside = name in names_stored([loop])
    value = _set_anew(loop, guard, name) if inside else _never_changed(unit, loop, name)
    if value is None:
        return None
    table = guards.truths(guard.test, counter, counted.right, windows=1, start=value)
    found = {column[0] for size, column in table.items() if size > 1}
    if len(found) != 1:
        return None
    always = found.pop()
    size = unit.source.segment(counted.right)
    if always and not is_of_a_window(unit.text_of(loop), size, name):
        return None  # `rank % ranks == 0`: it may count something else, and each round is right
    truth = "is true at every micro-batch" if always else "can never be true"
    where = f"`{name} = 0` stands before the loop" if inside else f"`{name} += 1` in each round"
    return f"{truth}: {name} is {value} in all of them", f"see to it that {where}"


def _set_anew(loop: ast.For | ast.While, guard: ast.If, name: str) -> int | None:
    """Return what the counter is at the guard, if each round sets it and counts on from there."""
    value: int | None = None
    for each in loop.body[: loop.body.index(guard)]:
        if name not in names_stored([each]):
            continue
        if isinstance(each, ast.Assign):
            value = _number(each.value)
        elif isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add):
            added = _number(each.value)
            value = value + added if value is not None and added is not None else None
        else:
            value = None
        if value is None:
            return None
    return value


def _never_changed(unit: Unit, loop: ast.For | ast.While, name: str) -> int | None:
    """Return the one number that the counter is given in its function, before the loop."""
    if f"global {name}" in unit.source.text or f"nonlocal {name}" in unit.source.text:
        return None
    around = unit.functions_around(loop.lineno)
    body = around[-1].body if around else unit.source.tree.body
    given = [
        each
        for each in statements_in(body)
        if isinstance(each, ast.Assign) and any(_is(to, name) for to in each.targets)
    ]
    stored = [each for each in targets(body) if _is(each, name)]
    values = {_number(each.value) for each in given}
    before = all(each.lineno < loop.lineno for each in given)
    return values.pop() if before and len(given) == len(stored) and len(values) == 1 else None


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _finding(program: Program, test: ast.expr, owner: str, fault: Fault) -> Finding:
    rule = BY_CODE["ZG504"]
    source = program.main.source
    names = {"condition": source.segment(test), "owner": owner, "fault": fault[0]}
    return Finding(
        rule=rule,
        spot=source.spot(test),
        message=rule.summary.format_map(names),
        advice=fault[1],
        owner=owner,
    )
