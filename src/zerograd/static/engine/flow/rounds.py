"""Rounds of a loop that counts: which remainders by a number written out hold in each of them.

`(i + 1) % 3 == 0` holds in every third round, and never in two in a row. So what such tests say
repeats itself, and the rounds of a loop are told apart by their place in that cycle.
"""

from __future__ import annotations

import ast
from math import lcm
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.ir import Loop
from zerograd.static.engine.reading.counters import counter_of, is_number
from zerograd.static.engine.text import guards
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.remainders import is_modulo, is_positive
from zerograd.static.engine.text.stores import names_stored

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

LONGEST_CYCLE = 6  # rounds; a longer one is a matter of logs and checkpoints, mostly

Cycle = tuple[frozenset[int], ...]  # the literals that hold in each of its rounds

NO_CYCLE: Cycle = (frozenset(),)


def cycle_of(loop: Loop, program: Program, atoms: dict[str, int]) -> Cycle:
    """Return what is known of each round of a cycle, the first round of the loop first."""
    if not any("%" in key for key in atoms):
        return NO_CYCLE
    counter = _counted(loop)
    if counter is None:
        return NO_CYCLE
    name, start = counter
    found: list[tuple[int, ast.expr]] = []
    length = 1
    for key, number in atoms.items():
        atom = program.atoms.get(key)
        if atom is None or atom.node is None or not atom.names:
            continue
        if not all(
            each.partition("#")[0] == name and program.is_stored(loop, each) for each in atom.names
        ):
            continue
        period = _period(atom.node, name)
        if period and lcm(length, period) <= LONGEST_CYCLE:
            length = lcm(length, period)
            found.append((number, atom.node))
    if not found:
        return NO_CYCLE
    columns = [
        column
        for number, node in found
        if len(set(column := _truths(number, node, name, range(start, start + length)))) > 1
    ]
    # One that is the same in every round is a fault of its own, and means to change.
    return tuple(map(frozenset, zip(*columns, strict=True))) or NO_CYCLE


def _truths(number: int, test: ast.expr, name: str, rounds: range) -> list[int]:
    """Return the literal that holds in each of these rounds."""
    counter, one = ast.Name(name, ast.Load()), ast.Constant(1)
    truths = [guards.truth_at(test, counter, one, index) for index in rounds]
    return [number * 2 + (each is is_positive(test)) for each in truths if each is not None]


def _counted(loop: Loop) -> tuple[str, int] | None:
    """Return the counter and where it starts, if it goes up by one each round and only so."""
    counter = counter_of(loop)
    if counter is None:
        return None
    assert isinstance(loop.node, ast.For) and loop.over is not None
    for call in parts_below(loop.over):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            given = [*call.args[1:], *(each.value for each in call.keywords if each.arg == "start")]
            if call.func.id == "range" and len(call.args) > 2:
                return None
            if call.func.id == "enumerate" and not all(map(is_number, given)):
                return None  # counted on from what was done before
    return None if counter[0] in names_stored(loop.node.body) else counter


def _period(test: ast.expr, name: str) -> int:
    """Return after how many rounds its truth comes again: it speaks of remainders only."""
    modulos = [each for each in parts_below(test) if is_modulo(each)]
    inside = {id(each) for modulo in modulos for each in parts_below(modulo.left)}  # type: ignore[attr-defined]
    period = 1
    for modulo in modulos:
        assert isinstance(modulo, ast.BinOp)
        if not isinstance(modulo.right, ast.Constant) or not is_number(modulo.right):
            return 0
        size = modulo.right.value
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            return 0
        period = lcm(period, size)
    named = [each for each in parts_below(test) if isinstance(each, ast.Name)]
    linear = all(each.id == name and id(each) in inside for each in named)
    return period if named and linear and not _nests(modulos) else 0


def _nests(modulos: list[ast.AST]) -> bool:
    """Is one remainder, or a quotient, taken of another?"""
    return any(
        isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod | ast.FloorDiv)
        for modulo in modulos
        for each in parts_below(modulo.left)  # type: ignore[attr-defined]
    )
