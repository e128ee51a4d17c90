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
from zerograd.static.engine.identity.ir import Happening, Loop
from zerograd.static.engine.identity.shown import code_of, name_of
from zerograd.static.engine.judging.ranks import synchronises_each, told_of_apex
from zerograd.static.engine.judging.window import Window, flushes_by_number, is_divided_by, windows
from zerograd.static.engine.reading.counters import is_number
from zerograd.static.engine.text import guards
from zerograd.static.engine.text.remainders import is_positive
from zerograd.static.engine.text.stores import names_stored, statements_in

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

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
        if _counts_another_loop(window):
            at = window.unit.source.spot(window.shown)
            told = _finding(window, "ZG504", at, fault=_OUTER_COUNTER, better="")
            yield replace(told, advice="count the micro-batches of the loop that the step is in")
            continue
        wrong = _wrong_guard(window)
        if wrong is not None:
            fault, better = wrong
            finding = _finding(
                window,
                "ZG504",
                window.unit.source.spot(window.shown),
                fault=fault,
                better=better,
            )
            yield replace(finding, trail=_trail(window))
            continue
        if window.step.loop is None or window.step.loop.pseudo:
            continue
        if not window.emptied and _loses_its_tail(window, buckets):
            yield _finding(window, "ZG502", window.step.spot)
        if not window.emptied and _is_summed(window):
            yield _finding(window, "ZG503", window.step.spot)
        if not window.emptied and synchronises_each(window.step):
            told = _finding(window, "ZG505", window.backwards[0].spot)
            yield told_of_apex(told, window.step)


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
        cuts = isinstance(loop, ast.For | ast.AsyncFor) and makes_pieces(loop)
        if cuts and not any(each.averaged for each in filled) and not _divides(step):
            yield _note(step, "ZG503", step.spot)
        if synchronises_each(step):
            yield told_of_apex(_note(step, "ZG505", filled[0].spot), step)


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
        if not _asks_for(window.test, 0) or is_number(window.divisor):
            continue
        for clear in buckets.happenings:
            if clear.kind is not EventKind.CLEAR or clear.event is None:
                continue
            for key in sorted(clear.guards - window.step.guards):
                atom, number = program.atoms.get(key), atoms.get(key)
                test = atom.node if atom is not None else None
                if not isinstance(test, ast.Compare) or not _asks_for(test, 1) or number is None:
                    continue
                modulo = test.left
                same = (
                    atom is not None
                    and atom.unit is window.unit
                    and isinstance(modulo, ast.BinOp)
                    and window.text(modulo) == window.text(window.modulo)
                )
                if same and all(number * 2 + 1 in each for each in flow.known_at(clear)):
                    yield _never_of_one(window, test)


def _asks_for(test: ast.expr, remainder: int) -> bool:
    """Is it `… == remainder`?"""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == remainder
    )


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


def _wrong_guard(window: Window) -> tuple[str, str] | None:
    """Return what is wrong with the guard and what to write instead, if it is wrong."""
    counter, start = _counter(window)
    if counter is None or len(window.within) != 1:
        return None
    table = guards.truths(window.test, counter, window.divisor, windows=3, start=start or 0)
    denied = window.within != {is_positive(window.test)}  # the step stands on the other side
    if denied:
        table = {size: [not each for each in column] for size, column in table.items()}
    name, divisor = window.text(counter), window.text(window.divisor)
    sign = " != 0" if denied else " == 0"
    if denied and isinstance(window.test, ast.BinOp):
        sign = ""  # `not i % n`, or asked elsewhere: the `not`, or the `== 0`, stays where it is
    right = f"({name} + 1) % {divisor}{sign}" if start == 0 else f"{name} % {divisor}{sign}"
    if guards.is_never(table):
        return "is always true, which keeps it away" if denied else "can never be true", right
    if guards.is_always(table):
        return f"is {'false' if denied else 'true'} at every micro-batch", right
    if guards.is_opposite(table):
        if denied and (window.emptied or _is_a_choice(window)):
            return None  # nothing is collected, or that round is another's turn
        spared = "one" if start is None else guards.left_out(table)
        verb = "lets it through" if denied else "holds"
        return f"{verb} at every micro-batch but {spared} of a window", right
    if start is None or _names_first(window, name) or _is_an_engines(window):
        return None
    if start == 1 and guards.is_one_early(table) and not flushes_by_number(window):
        return "is off by one: the counter starts at 1", right
    if window.within != window.sides:
        return None  # the last round is let through as well: who thought of that may mean the first
    if _steps_first(window):
        return None
    if start == 0 and guards.is_at_first(table) and _looks_like_a_window(window):
        return "is off by one: the first window has one micro-batch only", right
    return None


def _steps_first(window: Window) -> bool:
    """Does a round begin with the step on what the rounds before it left: a whole window?"""
    step = window.step
    return all(
        each.unit is step.unit and each.spot.line > step.spot.line for each in window.backwards
    )


def _is_a_choice(window: Window) -> bool:
    """Does the step stand in the `else` of something that calls others where the guard is true?"""
    return any(
        isinstance(each, ast.If)
        and bool(each.orelse)
        and any(part is window.test for part in ast.walk(each.test))
        and any(isinstance(part, ast.Expr) for part in each.body)
        for each in ast.walk(window.unit.source.tree)
    )


def _counts_another_loop(window: Window) -> bool:
    """Is it the epoch that is counted, although the loss is divided by the size of a window?"""
    loop = window.step.loop
    inner = loop.node if loop is not None else None
    outer = loop.parent.node if loop is not None and loop.parent is not None else None
    if not isinstance(inner, ast.For | ast.While) or not isinstance(outer, ast.For):
        return False
    names = {each.id for each in ast.walk(window.left) if isinstance(each, ast.Name)}
    targets = {each.id for each in ast.walk(outer.target) if isinstance(each, ast.Name)}
    if not names or not names <= targets - names_stored([inner]):
        return False
    if isinstance(inner, ast.For) and _is_for_some_items(window, inner):
        return False  # for one of them perhaps, so that one round of the loop around is one batch
    return is_divided_by(window.step, window.text(window.divisor))


def _is_for_some_items(window: Window, loop: ast.For) -> bool:
    """Is the step under a test of what the loop goes through: `if phase == "train"`?"""
    items = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    line = window.step.spot.line
    return any(
        isinstance(each, ast.If)
        and each.lineno <= line <= (each.end_lineno or 0)
        and any(isinstance(part, ast.Name) and part.id in items for part in ast.walk(each.test))
        for each in statements_in(loop.body)
    )


def _counter(window: Window) -> tuple[ast.expr | None, int | None]:
    """Return what counts in the guard, and where it starts, as far as that is known."""
    if window.index is not None:
        name, start = window.index
        spoken = [each for each in ast.walk(window.test) if isinstance(each, ast.Name)]
        counter = next((each for each in spoken if each.id == name), None)
        if counter is not None:
            return counter, start
    named = [
        each
        for each in ast.walk(window.left)
        if isinstance(each, ast.Attribute | ast.Name) and isinstance(each.ctx, ast.Load)
    ]
    return (named[0] if named else None), None


def _names_first(window: Window, name: str) -> bool:
    """Does another condition around the step speak of the counter, as `i > 0` does?

    One that lets the step through where the guard does not, `or i == last`, says nothing of it.
    """
    return any(
        re.search(rf"\b{re.escape(name)}\b", key.split("|", 1)[0])
        for key in window.step.guards
        if key not in (window.guard, *window.flushed)
        and not (key.startswith("either(") and window.guard in key)
    )


def _is_an_engines(window: Window) -> bool:
    """Is the divisor DeepSpeed's? Its engine keeps the windows, and the step only looks so."""
    text = window.step.unit.source.text
    if "deepspeed" not in text:
        return False  # most files: no pattern has to look
    name = re.escape(window.text(window.divisor))
    return bool(re.search(rf"\b{name}\s*=[^=\n]*deepspeed", text))


def _looks_like_a_window(window: Window) -> bool:
    """Is it cleared where it is stepped, or the divisor named as a number of micro-batches?"""
    if window.cleared:
        return True
    divisor = window.text(window.divisor)
    named = re.search(r"acc|grad|micro|update|iter_size", divisor, re.IGNORECASE)
    text = window.step.loop.text if window.step.loop is not None else ""
    return bool(named) or bool(re.search(rf"(?<!/)/=?\s*{re.escape(divisor)}\b", text))


def _loses_its_tail(window: Window, buckets: Buckets) -> bool:
    if window.sides != {True} or not _looks_like_a_window(window) or not _starts_anew(window):
        return False
    return not any(
        each.kind is EventKind.STEP
        and each.optimizer is window.step.optimizer
        and each.loop is not window.step.loop
        for each in buckets.happenings
    )


def _starts_anew(window: Window) -> bool:
    """Does the counter begin again in each epoch? One that runs on carries the tail over."""
    names = {each.id for each in ast.walk(window.left) if isinstance(each, ast.Name)}
    if window.index is not None and window.index[0] in names:
        return True
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
    if any(each.averaged for each in window.backwards) or not _looks_like_a_window(window):
        return False
    size = window.text(window.modulo.right)
    return not _divides(window.step) and not is_divided_by(window.step, size)


def _divides(step: Happening) -> bool:
    """Is a loss divided in the loop of this step, or in the function that it calls for it?"""
    text = step.loop.text if step.loop is not None else ""
    around = step.unit.functions_around(step.node.lineno)[-1:]  # type: ignore[attr-defined]
    called = "".join(map(step.unit.text_of, around))
    if called not in text and text not in called:
        text += called
    return bool(re.search(r"loss\w*[\"'\])]*\s*/|\.div_?\(|1\.?0?\s*/", text))
