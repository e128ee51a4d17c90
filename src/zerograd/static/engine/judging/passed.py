"""Clears that are in sight and do not help: under a condition, or outside the loop of the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.findings import Finding
from zerograd.rules.clip_after_step import MAKE_A_LIST
from zerograd.rules.stale_gradient import NOTHING_CLEARS
from zerograd.static.engine.flow.closures import repeats
from zerograd.static.engine.flow.steppers import loops_around
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening, Loop
from zerograd.static.engine.identity.shown import code_of
from zerograd.static.engine.judging.window import is_before_the_window
from zerograd.static.engine.text.doing import notes_down
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program


def told_of_clears(
    finding: Finding, step: Happening, buckets: Buckets, program: Program
) -> Finding:
    """Say in a trail of ZG101 which line does clear, and why not here, if one does."""
    if not finding.trail:
        return finding
    vain = _clear_in_vain(step, program)
    if vain is not None:
        return _told_in_vain(finding, step.unit, vain)
    clears = _clears(step, buckets)
    beside = [each for each in clears if each.loop is step.loop]
    for clear in beside:
        condition = _condition(clear.node, clear.unit, step, _may_change(clear, step, program))
        if condition and not is_before_the_window(clear):
            where = _place(clear, step)
            told = _said(finding, where, f"only {condition}")
            by_hand = step.optimizer is not None and step.optimizer.is_by_hand
            if by_hand or not _counts(clear, step, program):
                return told
            again = f"call {finding.owner}.zero_grad() after every step"
            if _is_for_the_log(clear):
                return replace(told, advice=again)
            # A window, one would think: then it is the step that comes too often.
            under = f"put {code_of(step)} under the condition of {where}"
            return replace(told, advice=f"{under}, or {again}")
    if beside:
        return _said(finding, "", "before the next backward()")
    around = loops_around(step.loop)[1:]
    for clear in clears:
        outside = clear.loop is None or clear.loop in around
        if step.loop is not None and not step.loop.pseudo and outside:
            when = "before the first call of the closure" if repeats(step) else "outside this loop"
            return _said(finding, _place(clear, step), f"only {when}")
    for clear in _clears(step, buckets, rescues=True):
        return _said(finding, _place(clear, step), "only where an exception is caught")
    reached = any(_meets(each, step) for each in buckets.happenings)
    for call in _written_beside(finding.owner, step):  # and left out by what it is called with
        condition = _condition(call, step.unit, step, may_change=False)
        if condition:
            return _said(finding, f"line {step.unit.source.spot(call).line}", f"only {condition}")
        if not reached and step.loop is not None and _is_in(call, _body(step.loop.node)):
            line = f"line {step.unit.source.spot(call).line}"
            told = _said(
                finding, "", f"({finding.owner}.zero_grad() in {line} does not reach them)"
            )
            mend = f"let {finding.owner}.zero_grad() clear what {finding.owner}.step() uses"
            return replace(told, advice=mend)
    return finding


def told_once(found: list[Finding], buckets: Buckets) -> list[Finding]:
    """Leave out stale gradients whose only clear cuts a window short: one fault, told there.

    What another loop never clears is a fault of its own, and so it is told beside it.
    """
    early = {each.spot for each in found if each.rule.code == "ZG501" and each.certain}
    if not early:
        return found  # most of them

    def is_told(each: Finding) -> bool:
        if each.rule.code != "ZG101":
            return False
        steps = [one for one in buckets.happenings if one.spot == each.spot]
        pairs = [(one, step) for step in steps for one in _clears(step, buckets)]
        near = any(_share_a_loop(one.loop, step.loop) for one, step in pairs)
        return near and {one.spot for one, _ in pairs} <= early

    return [each for each in found if not is_told(each)]


def _share_a_loop(loop: Loop | None, other: Loop | None) -> bool:
    """Does one of two loops stand in the other, or is it the same?"""
    return loop in loops_around(other) or other in loops_around(loop)


def _clear_in_vain(step: Happening, program: Program) -> ast.For | None:
    """Return the loop over parameters beside a step that was to clear, and finds none."""
    around = step.loop.node if step.loop is not None and step.unit.used_up else None
    loops = statements_in([around]) if around is not None else []
    return next(
        (
            each
            for each in loops
            if isinstance(each, ast.For)
            and program.used_up(step.unit, each) is not None
            and step.unit.mentions_gradient(each)
        ),
        None,
    )


def _told_in_vain(finding: Finding, unit: Unit, loop: ast.For) -> Finding:
    used = unit.used_up[id(loop)]
    name, made = (unit.source.segment(each) for each in (used.made.targets[0], used.made.value))
    line = unit.source.spot(used.by).line
    past = "its first time" if used.by is loop else f"line {line}"
    when = f"(the loop in line {unit.source.spot(loop).line} finds no parameters, since {past}"
    told = _said(finding, "", f"{when} has gone through {name})")
    return replace(told, advice=MAKE_A_LIST.format(name=name, made=made))


def _said(finding: Finding, where: str, when: str) -> Finding:
    first, *rest = finding.trail
    words = first.text.replace(NOTHING_CLEARS, f"{where or 'nothing'} clears")
    return replace(finding, trail=(replace(first, text=f"{words} {when}"), *rest))


def _place(clear: Happening, step: Happening) -> str:
    """Return where a clear is, as seen from the step: it may be in another file, or cell."""
    spot = clear.spot
    if spot.path != step.spot.path:
        return str(spot).rpartition(":")[0]
    return f"line {spot.line}" + (f" of cell {spot.cell}" if spot.cell != step.spot.cell else "")


def _clears(step: Happening, buckets: Buckets, *, rescues: bool = False) -> list[Happening]:
    """Return what clears all that a step uses, in every round or where an exception is caught."""
    mine = set(step.event.buckets) if step.event is not None else set()
    return [
        each
        for each in buckets.happenings
        if each.kind is EventKind.CLEAR
        and each.event is not None
        and each.rescues is rescues
        and mine <= set(each.event.buckets)
    ]


def _meets(clear: Happening, step: Happening) -> bool:
    """Does a clear reach any of what a step uses?"""
    if clear.kind is not EventKind.CLEAR or clear.event is None or step.event is None:
        return False
    return not set(clear.event.buckets).isdisjoint(step.event.buckets)


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


def _is_for_the_log(clear: Happening) -> bool:
    """Does all that is done beside the clear, under its condition, write something down?"""
    around = [
        body
        for each in clear.unit.statements()
        if isinstance(each, ast.If)
        for body in (each.body, each.orelse)
        if _is_in(clear.node, body)
    ]
    body = max(around, key=lambda each: each[0].lineno, default=[])
    beside = [each for each in body if not _is_in(clear.node, [each])]
    return bool(beside) and all(_is_written_down(each) for each in beside)


def _is_written_down(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and notes_down(words_of(path_of(call.func)))


def _condition(clear: ast.AST, unit: Unit, step: Happening, may_change: bool) -> str:
    """Return the innermost condition around the clear that the step is not under.

    Of one that is the same in all rounds, the other side is another program.
    """
    found = ""
    for each in unit.statements():
        if not isinstance(each, ast.If | ast.Match) or not _is_in(clear, [each]):
            continue
        here = unit is step.unit
        if here and _is_in(step.node, [each]) and not may_change:
            continue
        for body, words in _sides(each, unit):
            if _is_in(clear, body) and not (here and _is_in(step.node, body)):
                found = words
    return found


def _sides(choice: ast.If | ast.Match, unit: Unit) -> Iterator[tuple[list[ast.stmt], str]]:
    """Yield the blocks of a choice, and in words when each is run."""
    if isinstance(choice, ast.If):
        test = unit.source.segment(choice.test)
        yield choice.body, f"if `{test}`"
        yield choice.orelse, f"where not `{test}`"
        return
    for case in choice.cases:
        yield case.body, f"in `case {unit.source.segment(case.pattern)}`"


def _body(loop: ast.AST | None) -> Sequence[ast.stmt]:
    return loop.body if isinstance(loop, ast.For | ast.AsyncFor | ast.While) else ()


def _is_in(node: ast.AST, body: Sequence[ast.stmt]) -> bool:
    line = getattr(node, "lineno", 0)
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or 0)
