"""Clears that are in sight and do not help: under a condition, or outside the loop of the step."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.judging.window import is_before_the_window

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.reading.program import Program


def told_of_clears(
    finding: Finding, step: Happening, buckets: Buckets, program: Program
) -> Finding:
    """Say in a trail of ZG101 which line does clear, and why not here, if one does."""
    found = _passed_by(step, buckets, program)
    if found is None or not finding.trail:
        return finding
    clear, when = found
    line = clear.spot.line
    words = f"steps; line {line} clears the gradients it used only {when}"
    first, *rest = finding.trail
    finding = replace(finding, trail=(replace(first, text=words), *rest))
    if clear.loop is step.loop and _counts(clear, step, program):
        # A window, one would think: then it is the step that comes too often.
        also = f"call {finding.owner}.zero_grad() after every step"
        advice = f"put {finding.owner}.step() under the condition of line {line}, or {also}"
        finding = replace(finding, advice=advice)
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


def _passed_by(step: Happening, buckets: Buckets, program: Program) -> tuple[Happening, str] | None:
    clears = [
        each
        for each in _clears(step, buckets)
        if each.unit is step.unit and each.spot.cell == step.spot.cell
    ]
    for clear in clears:
        if clear.loop is step.loop:
            condition = _condition(clear, step, program)
            if condition and not is_before_the_window(clear):
                return clear, condition
    around = loops_around(step.loop)[1:]
    for clear in clears:
        outside = clear.loop is None or clear.loop in around
        if step.loop is not None and not step.loop.pseudo and outside:
            return clear, "outside this loop"
    return None


def _counts(clear: Happening, step: Happening, program: Program) -> bool:
    """Does a counter let the clear through, and not the step?"""
    atoms = [program.atoms.get(key) for key in clear.guards - step.guards]
    return any(each is not None and each.counter for each in atoms)


def _condition(clear: Happening, step: Happening, program: Program) -> str:
    """Return the innermost condition around the clear that the step is not under.

    Of one that is the same in all rounds, the other side is another program.
    """
    varies = step.loop is not None and any(
        program.varies(step.loop, key) for key in clear.guards & step.guards
    )
    found = ""
    for each in clear.unit.statements():
        if not isinstance(each, ast.If) or (_is_in(step, [each]) and not varies):
            continue
        for body, words in ((each.body, "if `{}`"), (each.orelse, "where not `{}`")):
            if _is_in(clear, body) and not _is_in(step, body):
                found = words.format(clear.unit.source.segment(each.test))
    return found


def _is_in(node: Happening, body: Sequence[ast.stmt]) -> bool:
    line = getattr(node.node, "lineno", 0)
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or 0)
