"""What is wrong with windows: their counters, their ends, and what is done in each round."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.lifecycle.pieces import makes_pieces
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening, Loop
from zerograd.static.engine.identity.shown import code_of, name_of
from zerograd.static.engine.judging.by_hand import begins_anew
from zerograd.static.engine.judging.guarded import counts_another_loop, wrong_guard
from zerograd.static.engine.judging.ranks import as_written, synchronises_each
from zerograd.static.engine.judging.window import (
    Window,
    is_divided_by,
    looks_like_a_window,
    windows,
)
from zerograd.static.engine.reading.counters import is_number
from zerograd.static.engine.text.parts import names_below
from zerograd.static.engine.text.remainders import asks_for

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

_DIVIDES = re.compile(
    r"loss\w*[\"'\])]*\s*/|div_?\(|1\.?0?\s*/|\.grad(?:\.data)?(?:\.mul_\((?!0\.?0?\))|\s*[*/]=(?!\s*0\.?0?\s*$))",
    re.MULTILINE,
)
# what is only added up to be shown: its mean says nothing of the loss that goes back
_SHOWN = re.compile(r"(?m)^\s*(\w*loss\w*)\s*\+=[^\n]*(?:\.item\(|\.detach\(|float\(|\.data\b)")
_OUTER_COUNTER = (
    "asks for a counter of the outer loop, which is the same at all micro-batches of the inner one"
)


def window_findings(
    program: Program, buckets: Buckets, flow: Flow, atoms: dict[str, int]
) -> Iterator[Finding]:
    """Yield what is wrong with the windows of one root."""
    yield from _wrong_clears(program, buckets, flow, atoms)
    yield from _loops_of_their_own(buckets, flow)
    for window in windows(program, buckets, flow, atoms):
        if counts_another_loop(window):
            at = window.unit.source.spot(window.shown)
            told = _finding(window, "ZG504", at, fault=_OUTER_COUNTER, better="")
            yield replace(told, advice="count the micro-batches of the loop that the step is in")
            continue
        wrong = wrong_guard(window)
        if wrong is not None:
            fault, advice = wrong
            at = window.unit.source.spot(window.shown)
            finding = _finding(window, "ZG504", at, fault=fault, better="")
            yield replace(finding, advice=advice, trail=_trail(window))
            continue
        if window.step.loop is None or window.step.loop.pseudo or window.emptied:
            continue
        if _loses_its_tail(window, buckets):
            yield _finding(window, "ZG502", window.step.spot)
        if window.single:
            continue
        if _is_summed(window):
            yield _finding(window, "ZG503", window.step.spot)
        if synchronises_each(window.step):
            told = _finding(window, "ZG505", window.backwards[0].spot)
            yield as_written(told, window.step)


def _trail(window: Window) -> tuple[TrailStep, ...]:
    """Return the steps that one guard lets through, where there are several."""
    if len(window.steps) < 2:
        return ()
    return tuple(TrailStep(each.spot, "stands under it", code_of(each)) for each in window.steps)


def _loops_of_their_own(buckets: Buckets, flow: Flow) -> Iterator[Finding]:
    """Yield what is wrong with windows that no counter ends, but a loop inside that of the step."""
    told: set[str] = set()
    for step in buckets.happenings:
        if step.kind is not EventKind.STEP or step.event is None or id(step) not in flow.reached:
            continue
        owner = step.event.owner
        inner = [
            each
            for each in buckets.happenings
            if each.event is not None and _is_within(each.loop, step.loop)
        ]
        filled = [
            each
            for each in inner
            if each.kind is EventKind.BACKWARD
            and each.event is not None
            and each.event.fills == {owner}
        ]
        # What is stepped or cleared in there as well is no window of that loop, nor is what is
        # cleared between it and the step.
        between = _after_each_round(filled, step, buckets)
        others = [
            each
            for each in (*inner, *between)
            if each.kind in (EventKind.STEP, EventKind.CLEAR)
            and each.event is not None
            and not set(each.event.buckets).isdisjoint(step.event.buckets)
        ]
        if not filled or others or owner in told:
            continue
        told.add(owner)
        loop = filled[0].loop.node if filled[0].loop is not None else None
        cuts = isinstance(loop, ast.For | ast.AsyncFor | ast.While) and makes_pieces(loop)
        if cuts and not any(each.averaged for each in filled) and not _divides(step):
            yield _note(step, "ZG503", step.spot)
        if synchronises_each(step):
            yield as_written(_note(step, "ZG505", filled[0].spot), step)


def _after_each_round(
    filled: list[Happening], step: Happening, buckets: Buckets
) -> list[Happening]:
    """Return what happens from the last of these losses to the step, be it of the next round."""
    if not filled:
        return []
    happenings = buckets.happenings
    last, stepped = happenings.index(filled[-1]), happenings.index(step)
    if last < stepped:
        return happenings[last:stepped]
    around = (*happenings[last:], *happenings[:stepped])
    return [each for each in around if each.loop is step.loop or _is_within(each.loop, step.loop)]


def _is_within(loop: Loop | None, outer: Loop | None) -> bool:
    """Is it a loop of the program's own inside `outer`?"""
    if loop is None or outer is None or loop is outer or loop.pseudo or loop.once:
        return False
    around = loop.parent
    while around is not None and around is not outer:
        around = around.parent
    return around is outer


def _wrong_clears(
    program: Program, buckets: Buckets, flow: Flow, atoms: dict[str, int]
) -> Iterator[Finding]:
    """Yield the clears at a window's first micro-batch that a window of one never reaches."""
    for window in windows(program, buckets, flow, atoms):
        if window.by_hand or not asks_for(window.test, 0) or is_number(window.divisor):
            continue
        for clear in buckets.happenings:
            if clear.kind is not EventKind.CLEAR or clear.event is None:
                continue
            for key in sorted(clear.guards - window.step.guards):
                atom, number = program.atoms.get(key), atoms.get(key)
                test = atom.node if atom is not None else None
                if not isinstance(test, ast.Compare) or not asks_for(test, 1) or number is None:
                    continue
                modulo = test.left
                same = (
                    atom is not None
                    and atom.unit is window.unit
                    and isinstance(modulo, ast.BinOp)
                    and window.text(modulo) == window.text(window.asked)
                )
                if same and all(number * 2 + 1 in each for each in flow.known_at(clear)):
                    yield _never_of_one(window, test)


def _never_of_one(window: Window, test: ast.Compare) -> Finding:
    divisor, condition = window.text(window.divisor), window.text(test)
    rule = BY_CODE["ZG504"]
    return Finding(
        rule=rule,
        spot=window.unit.source.spot(test),
        message=(
            f"the condition `{condition}` around the clear can never be true where {divisor} is 1"
        ),
        advice=f"clear {name_of(window.step)} right after its step",
        owner=name_of(window.step),
    )


def _finding(window: Window, code: str, spot: Spot, **names: str) -> Finding:
    return _note(window.step, code, spot, condition=window.text(window.shown), **names)


def _note(step: Happening, code: str, spot: Spot, **names: str) -> Finding:
    rule = BY_CODE[code]
    owner = name_of(step)
    words = {"owner": owner, **names}
    return Finding(
        rule=rule,
        spot=spot,
        message=rule.summary.format_map(words),
        advice=rule.advice.format_map(words),
        owner=owner,
    )


def _loses_its_tail(window: Window, buckets: Buckets) -> bool:
    whole = len(window.sides) == 1 if window.by_hand else window.sides == {True}
    if not whole or not looks_like_a_window(window) or not _starts_anew(window):
        return False
    return not _comes_out_even(window) and not any(
        each.kind is EventKind.STEP
        and each.optimizer is window.step.optimizer
        and each.loop is not window.step.loop
        for each in buckets.happenings
    )


def _comes_out_even(window: Window) -> bool:
    """Are the rounds of its loop, where both are written out, so many whole windows?"""
    over = window.step.loop.over if window.step.loop is not None else None
    counts = isinstance(over, ast.Call) and path_of(over.func) == "range" and len(over.args) == 1
    rounds, size = over.args[0] if counts else None, window.divisor  # type: ignore[union-attr]
    if not isinstance(rounds, ast.Constant) or not isinstance(size, ast.Constant):
        return False
    whole = type(rounds.value) is int and type(size.value) is int and size.value > 0
    return whole and rounds.value % size.value == 0  # type: ignore[operator]


def _starts_anew(window: Window) -> bool:
    """Does the counter begin again in each epoch? One that runs on carries the tail over."""
    if window.by_hand:
        return begins_anew(window)
    names = set(names_below(window.left))
    if window.index is not None and window.index[0] in names:
        return True
    if any(begins_anew(window, each) for each in names):
        return True  # counted by hand, from the beginning of the function
    loop = window.step.loop
    names |= _copied(loop.node if loop is not None else None, names)
    outer = loop.parent.node if loop is not None and loop.parent is not None else None
    if not isinstance(outer, ast.For | ast.While):
        return False
    again = [
        target.id
        for statement in outer.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    ]
    return not names.isdisjoint(again)


def _copied(loop: ast.AST | None, names: set[str]) -> set[str]:
    """Return what the loop copies into these names, as `i = at` does."""
    return {
        statement.value.id
        for statement in (loop.body if isinstance(loop, ast.For | ast.While) else [])
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Name)
        and any(isinstance(each, ast.Name) and each.id in names for each in statement.targets)
    }


def _is_summed(window: Window) -> bool:
    if any(each.averaged for each in window.backwards) or not looks_like_a_window(window):
        return False
    size = window.text(window.divisor)
    return not _divides(window.step) and not is_divided_by(window.step, size)


def _divides(step: Happening) -> bool:
    """Is a loss divided in the loop of this step, or in the function that it calls for it?

    Or are the gradients, by whatever number?
    """
    text = step.loop.text if step.loop is not None else ""
    around = step.unit.functions_around(step.node.lineno)[-1:]  # type: ignore[attr-defined]
    called = "".join(map(step.unit.text_of, around))
    if called not in text and text not in called:
        text += f"\n{called}"
    for shown in set(_SHOWN.findall(text)):
        text = re.sub(rf"\b{shown}\s*/", "", text)
    return _DIVIDES.search(text) is not None
