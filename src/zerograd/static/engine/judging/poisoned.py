"""ZG101: a batch that is skipped for its bad gradients, which nobody clears.

What is added to NaN is NaN: no later norm is finite any more, and no later batch is stepped on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.text.parts import names_below, parts_below
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

MESSAGE = "bad gradients are skipped but not cleared: whatever is added to them is bad too"
_BAD = {"isnan": True, "isinf": True, "isfinite": False}  # the truth that is bad news
_OF_GRADIENTS = frozenset(("norm", "grad", "grads", "gradient", "gradients", "gnorm"))


@dataclass(frozen=True, slots=True)
class _Guard:
    """A test for bad gradients, and the literal that one iteration back it was so."""

    test: ast.expr
    asked: frozenset[str]
    literal: int


def poisoned(
    program: Program, buckets: Buckets, flow: Flow, atoms: dict[str, int]
) -> Iterator[Finding]:
    """Yield the tests after a backward whose bad side leads to the next one with nothing cleared.

    A test before the backward keeps what is bad out of the gradients.
    """
    guards = [each for key, number in atoms.items() for each in _guards(program, key, number)]
    if not guards:
        return  # most files
    for node in buckets.happenings:
        if node.kind is not EventKind.BACKWARD or node.loop is None or node.loop.pseudo:
            continue
        for guard in guards:
            owner = _owner(node, buckets) if _is_about(guard, node) else ""
            if owner and _is_left(guard, node, flow):
                yield _finding(node, guard, owner)
                return  # say it once


def _guards(program: Program, key: str, number: int) -> Iterator[_Guard]:
    """Yield what a condition asks of numbers, if it is whether they are finite."""
    atom = program.atoms.get(key)
    node = atom.node if atom is not None else None
    if atom is None or node is None or atom.unit is not program.main:
        return
    parts = parts_below(node)
    if any(isinstance(each, ast.Compare) for each in parts):
        return
    for each in parts:
        asked = path_of(each.func).rsplit(".", 1)[-1] if isinstance(each, ast.Call) else ""
        if asked in _BAD:
            negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
            literal = number * 2 + (_BAD[asked] is not negated)
            names = frozenset(part.id for part in parts_below(each) if isinstance(part, ast.Name))
            yield _Guard(node, names, -literal - 1)
            return


def _is_about(guard: _Guard, backward: Happening) -> bool:
    """Is the loss itself asked, or a norm of what it filled, after it went back?"""
    if guard.test.lineno <= backward.spot.line or guard.test.lineno > _end(backward):
        return False
    loss = set(names_below(backward.node))
    words = {word for name in guard.asked for word in words_of(name)}
    return not guard.asked.isdisjoint(loss) or not _OF_GRADIENTS.isdisjoint(words)


def _end(backward: Happening) -> int:
    loop = backward.loop.node if backward.loop is not None else None
    return getattr(loop, "end_lineno", None) or 0


def _owner(backward: Happening, buckets: Buckets) -> str:
    """Return who steps on it in the same loop, as it is written there."""
    assert backward.event is not None
    filled = set(backward.event.buckets)
    steps = [
        each
        for each in buckets.happenings
        if each.kind is EventKind.STEP
        and each.loop is backward.loop
        and each.event is not None
        and not filled.isdisjoint(each.event.buckets)
    ]
    return steps[0].name if steps else ""


def _is_left(guard: _Guard, backward: Happening, flow: Flow) -> bool:
    """Does every round after a bad one begin with what that has filled, and nobody has used?"""
    assert backward.event is not None
    after = [
        flow.states[number]
        for bucket in backward.event.buckets
        for number, literals in flow.reached.get(id(backward), {}).get(bucket, ())
        if guard.literal in literals
    ]
    return bool(after) and all(
        not doubt
        and not state.unknown
        and bool(state.contributions)
        and not any(each.used_by for each in state.contributions)
        for state, doubt in after
    )


def _finding(backward: Happening, guard: _Guard, owner: str) -> Finding:
    rule, source = BY_CODE["ZG101"], backward.unit.source
    stations = (
        (backward.node, "fills the gradients"),
        (guard.test, "finds them bad, and skips the step and the clear"),
        (backward.node, "adds onto them in the next iteration"),
    )
    return Finding(
        rule=rule,
        spot=source.spot(guard.test),
        message=MESSAGE,
        advice=f"call {owner}.zero_grad() where the batch is skipped",
        owner=owner,
        trail=tuple(TrailStep(source.spot(n), text, source.segment(n)) for n, text in stations),
    )
