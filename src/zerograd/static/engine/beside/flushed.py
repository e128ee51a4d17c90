"""ZG504: the step for what is left of an epoch, under a guard that counts otherwise than the loop.

`if (i + 1) % k == 0: opt.step()` in the loop and `if i % k != 0: opt.step()` behind it: where the
last window was full the second steps on nothing, and one that lacks its first alone is left.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.remainders import asks_for, is_modulo
from zerograd.static.engine.text.stores import names_stored, statements_in
from zerograd.static.engine.text.words import is_optimizer_name, is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_OFF = "counts otherwise than the loop, whose windows end where `{ends}`"


class Count(NamedTuple):
    """`(counter + shift) % size`, compared with a number: what is asked is counter + shift."""

    counter: str
    size: str
    shift: int


def flushed_otherwise(program: Program) -> Iterator[Finding]:
    """Yield the guards of such steps that are off by some micro-batches."""
    unit = program.main
    if "%" not in unit.source.text or unit.source.text.count(".step(") < 2:
        return
    for each in [unit.source.tree, *unit.statements()]:
        for name in ("body", "orelse", "finalbody"):
            body = getattr(each, name, None)
            if isinstance(body, list) and body:
                yield from _in_block(program, unit, body)


def _in_block(program: Program, unit: Unit, body: list[ast.stmt]) -> Iterator[Finding]:
    for at, loop in enumerate(body):
        if not isinstance(loop, ast.For):
            continue
        for place, guard in enumerate(loop.body):
            ends = _asks(unit, guard.test, ends=True) if isinstance(guard, ast.If) else None
            if ends is None or not isinstance(guard, ast.If) or guard.orelse:
                continue
            owner = _steps(guard)
            if not owner or ends.counter in names_stored(loop.body[place:]):
                continue
            for behind, flush in enumerate(body[at + 1 :], at + 1):
                left = _asks(unit, flush.test, ends=False) if isinstance(flush, ast.If) else None
                if left is None or not isinstance(flush, ast.If) or _steps(flush) != owner:
                    continue
                stored = names_stored([*body[at + 1 : behind], *loop.orelse])
                if _are_apart(left, ends) and ends.counter not in stored:
                    yield _finding(program, guard.test, flush.test, owner)


def _are_apart(one: Count, other: Count) -> bool:
    """Do they ask the same counter for another remainder? `i % 4 == 3` is `(i + 1) % 4 == 0`."""
    if (one.counter, one.size) != (other.counter, other.size):
        return False
    apart = one.shift - other.shift
    return (apart % int(one.size) if one.size.isdigit() else apart) != 0


def _asks(unit: Unit, test: ast.expr, *, ends: bool) -> Count | None:
    """Return what a test counts, if it holds where a window ends, or else where one is open."""
    left, number = test, 0
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        if not isinstance(right, ast.Constant) or type(right.value) is not int:
            return None
        number = right.value
        open_ = isinstance(test.ops[0], ast.NotEq) or (
            isinstance(test.ops[0], ast.Gt) and number == 0
        )
        if not (asks_for(test, number) if ends else open_):
            return None
    elif ends:
        return None
    if not isinstance(left, ast.BinOp) or not is_modulo(left):
        return None
    counted = _shifted(left.left)
    if counted is None:
        return None
    return Count(counted[0], unit.source.segment(left.right), counted[1] - number)


def _shifted(node: ast.expr) -> tuple[str, int] | None:
    """Return the counter and the number that is added to it."""
    if isinstance(node, ast.Name):
        return node.id, 0
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return None
    left, right = node.left, node.right
    if not isinstance(left, ast.Name) or not isinstance(right, ast.Constant):
        return None
    if type(right.value) is not int:
        return None
    return left.id, right.value if isinstance(node.op, ast.Add) else -right.value


def _steps(guard: ast.If) -> str:
    """Return whose step stands in the branch."""
    for each in statements_in(guard.body):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
            owner, _, name = path_of(each.value.func).rpartition(".")
            if name == "step" and (is_optimizer_name(owner) or is_scaler_name(owner)):
                return owner
    return ""


def _finding(program: Program, ends: ast.expr, left: ast.expr, owner: str) -> Finding:
    rule = BY_CODE["ZG504"]
    source = program.main.source
    window = source.segment(ends)
    names = {
        "condition": source.segment(left),
        "owner": owner,
        "fault": _OFF.format(ends=window),
        "better": window.replace("==", "!="),
    }
    return Finding(
        rule=rule,
        spot=source.spot(left),
        message=rule.summary.format_map(names),
        advice=rule.advice.format_map(names),
        owner=owner,
    )
