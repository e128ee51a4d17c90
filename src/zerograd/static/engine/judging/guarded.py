"""The condition that lets a window's step through: is it true once in each window, at its end?"""

from __future__ import annotations

import ast
import re

from zerograd.static.engine.judging.by_hand import first_number, wrong_tally
from zerograd.static.engine.judging.window import (
    Window,
    flushes_by_number,
    is_divided_by,
    looks_like_a_window,
)
from zerograd.static.engine.text import guards
from zerograd.static.engine.text.parts import names_below, parts_below
from zerograd.static.engine.text.remainders import asks_for, is_positive
from zerograd.static.engine.text.stores import names_stored, statements_in

_TURNED_ROUND = "divides by the counter: no window is as long as the number that it names"


def wrong_guard(window: Window) -> tuple[str, str] | None:
    """Return what is wrong with the guard and what to do about it, if it is wrong."""
    if window.by_hand:
        size = window.text(window.divisor)
        return wrong_tally(window, divided=is_divided_by(window.step, size))
    wrong = _wrong_remainder(window)
    return None if wrong is None else (wrong[0], f"write `{wrong[1]}`")


def _wrong_remainder(window: Window) -> tuple[str, str] | None:
    """Return what is wrong with a remainder's test and what to write instead."""
    turned = _turned_round(window)
    if turned:
        return _TURNED_ROUND, turned
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
    if window.within != window.sides and not is_divided_by(window.step, divisor):
        return None  # the last round is let through as well: who thought of that may mean the first
    if _steps_first(window):
        return None
    if start == 0 and guards.is_at_first(table) and looks_like_a_window(window):
        return "is off by one: the first window has one micro-batch only", right
    return None


def _turned_round(window: Window) -> str:
    """Return the guard set right, if it is `accumulate % (i + 1)`: a number over the counter.

    Of eight, that holds at the first, second, fourth and eighth micro-batch, and never again.
    """
    if window.index is None or not asks_for(window.test, 0):
        return ""
    name, start = window.index
    above, below = (set(names_below(side)) for side in (window.left, window.divisor))
    if below != {name} or name in above or not _is_a_setting(window):
        return ""
    counted = f"({name} + 1)" if start == 0 else name
    return f"{counted} % {window.text(window.left)} == 0"


def _is_a_setting(window: Window) -> bool:
    """Is what is divided a number, or what no round of the loop assigns?"""
    loop = window.step.loop
    body = loop.node.body if loop is not None and isinstance(loop.node, ast.For) else []
    stored = names_stored(body)
    return not any(
        (isinstance(each, ast.Name) and each.id in stored)
        or (isinstance(each, ast.Attribute) and f".{each.attr}" in stored)
        for each in parts_below(window.left)
    )


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
        and any(part is window.test for part in parts_below(each.test))
        and any(isinstance(part, ast.Expr) for part in each.body)
        for each in parts_below(window.unit.source.tree)
    )


def counts_another_loop(window: Window) -> bool:
    """Is it the epoch that is counted, although the loss is divided by the size of a window?"""
    loop = window.step.loop
    inner = loop.node if loop is not None else None
    outer = loop.parent.node if loop is not None and loop.parent is not None else None
    if not isinstance(inner, ast.For | ast.While) or not isinstance(outer, ast.For):
        return False
    names = set(names_below(window.left))
    targets = set(names_below(outer.target))
    if not names or not names <= targets - names_stored([inner]):
        return False
    if isinstance(inner, ast.For) and _is_for_some_items(window, inner):
        return False  # for one of them perhaps, so that one round of the loop around is one batch
    return is_divided_by(window.step, window.text(window.divisor))


def _is_for_some_items(window: Window, loop: ast.For) -> bool:
    """Is the step under a test of what the loop goes through: `if phase == "train"`?"""
    items = set(names_below(loop.target))
    line = window.step.spot.line
    return any(
        isinstance(each, ast.If)
        and each.lineno <= line <= (each.end_lineno or 0)
        and any(isinstance(part, ast.Name) and part.id in items for part in parts_below(each.test))
        for each in statements_in(loop.body)
    )


def _counter(window: Window) -> tuple[ast.expr | None, int | None]:
    """Return what counts in the guard, and where it starts, as far as that is known."""
    if window.index is not None:
        name, start = window.index
        spoken = [each for each in parts_below(window.test) if isinstance(each, ast.Name)]
        counter = next((each for each in spoken if each.id == name), None)
        if counter is not None:
            return counter, start
    named = [
        each
        for each in parts_below(window.left)
        if isinstance(each, ast.Attribute | ast.Name) and isinstance(each.ctx, ast.Load)
    ]
    if not named or not isinstance(named[0], ast.Name):
        return (named[0] if named else None), None
    return named[0], first_number(window, named[0].id)


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
