"""Clears that are in sight and do not help: under a condition, or outside the loop of the step."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.identity.shown import code_of
from zerograd.static.engine.judging.window import is_before_the_window

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.reading.program import Program


def told_of_clears(
    finding: Finding, step: Happening, buckets: Buckets, program: Program
) -> Finding:
    """Say in a trail of ZG101 which line does clear, and why not here, if one does."""
    if not finding.trail:
        return finding
    clears = [
        each
        for each in _clears(step, buckets)
        if each.unit is step.unit and each.spot.cell == step.spot.cell
    ]
    beside = [each for each in clears if each.loop is step.loop]
    for clear in beside:
        condition = _condition(clear.node, step, _may_change(clear, step, program))
        if condition and not is_before_the_window(clear):
            told = _said(finding, clear.spot.line, f"only {condition}")
            by_hand = step.optimizer is not None and step.optimizer.is_by_hand
            if by_hand or not _counts(clear, step, program):
                return told
            # A window, one would think: then it is the step that comes too often.
            under = f"put {code_of(step)} under the condition of line {clear.spot.line}"
            again = f"call {finding.owner}.zero_grad() after every step"
            return replace(told, advice=f"{under}, or {again}")
    if beside:
        return _said(finding, 0, "before the next backward()")
    around = loops_around(step.loop)[1:]
    for clear in clears:
        outside = clear.loop is None or clear.loop in around
        if step.loop is not None and not step.loop.pseudo and outside:
            return _said(finding, clear.spot.line, "only outside this loop")
    for call in _written_beside(finding.owner, step):  # and left out by what it is called with
        condition = _condition(call, step, may_change=False)
        if condition:
            return _said(finding, step.unit.source.spot(call).line, f"only {condition}")
    return finding


def told_once(found: list[Finding], buckets: Buckets) -> list[Finding]:
    """Leave out stale gradients whose only clear cuts a window short: one fault, told there."""
    early = {each.spot for each in found if each.rule.code == "ZG501" and each.certain}
    if not early:
        return found  # most of them

    def is_told(each: Finding) -> bool:
        steps = [one for one in buckets.happenings if one.spot == each.spot]
        clears = {one.spot for step in steps for one in _clears(step, buckets)}
        return each.rule.code == "ZG101" and bool(clears) and clears <= early

    return [each for each in found if not is_told(each)]


def _said(finding: Finding, line: int, when: str) -> Finding:
    first, *rest = finding.trail
    who = f"line {line}" if line else "nothing"
    words = first.text.replace("nothing clears", f"{who} clears")
    return replace(finding, trail=(replace(first, text=f"{words} {when}"), *rest))


def _clears(step: Happening, buckets: Buckets) -> list[Happening]:
    """Return what clears all that a step uses."""
    mine = set(step.event.buckets) if step.event is not None else set()
    return [
        each
        for each in buckets.happenings
        if each.kind is EventKind.CLEAR
        and each.event is not None
        and not each.rescues
        and mine <= set(each.event.buckets)
    ]


def _written_beside(owner: str, step: Happening) -> list[ast.Call]:
    """Return the clears of the owner that stand in the function of the step."""
    around = step.unit.functions_around(getattr(step.node, "lineno", 0))[-1:]
    return [
        each
        for function in around
        for each in step.unit.parts_of(function)
        if isinstance(each, ast.Call) and path_of(each.func) == f"{owner}.zero_grad"
    ]


def _may_change(clear: Happening, step: Happening, program: Program) -> bool:
    """May a condition that both depend on be another one in the next round?"""
    shared = clear.guards & step.guards
    return step.loop is not None and any(program.varies(step.loop, key) for key in shared)


def _counts(clear: Happening, step: Happening, program: Program) -> bool:
    """Does a counter let the clear through, and not the step?"""
    atoms = [program.atoms.get(key) for key in clear.guards - step.guards]
    return any(each is not None and each.counter for each in atoms)


def _condition(clear: ast.AST, step: Happening, may_change: bool) -> str:
    """Return the innermost condition around the clear that the step is not under.

    Of one that is the same in all rounds, the other side is another program.
    """
    found = ""
    for each in step.unit.statements():
        if not isinstance(each, ast.If) or (_is_in(step.node, [each]) and not may_change):
            continue
        for body, words in ((each.body, "if `{}`"), (each.orelse, "where not `{}`")):
            if _is_in(clear, body) and not _is_in(step.node, body):
                found = words.format(step.unit.source.segment(each.test))
    return found


def _is_in(node: ast.AST, body: Sequence[ast.stmt]) -> bool:
    line = getattr(node, "lineno", 0)
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or 0)
