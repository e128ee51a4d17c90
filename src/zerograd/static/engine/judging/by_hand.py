"""Windows whose micro-batches the loop counts by hand: `n += 1`, `if n == k: …; n = 0`."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.reading.tallying import Beginning, begins, rounds_reaching
from zerograd.static.engine.text import guards
from zerograd.static.engine.text.remainders import is_one
from zerograd.static.engine.text.stores import targets
from zerograd.static.engine.text.switches import counts_up
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.static.engine.judging.window import Window

_ONE_TOO_MANY = "makes windows of {size} + 1 micro-batches, though the loss is divided by {size}"
_ONE_TOO_FEW = "makes windows of {size} - 1 micro-batches, though the loss is divided by {size}"


def begins_anew(window: Window, name: str = "") -> bool:
    """Is the tally set back where an epoch begins, whatever is left of the last one's window?

    Or the number of this name, of which the window asks the remainder?
    """
    loop = window.step.loop
    beginning = _beginning(window, name)
    if loop is None or beginning is None or not beginning.anew or _minds_its_tail(window):
        return False
    value = beginning.value or ast.Name("", ast.Load())
    if not isinstance(value, ast.Constant) and ast.dump(value) != ast.dump(window.divisor):
        return False  # it may go on with what was counted before
    around = window.unit.functions_around(loop.node.lineno)  # type: ignore[union-attr]
    outer = loop.parent
    if outer is not None and not outer.pseudo:
        return True  # by the loop around, or the function that it calls
    asked = [each.arg for each in around[-1].args.args] if around else []
    said = [word for name in (around[-1].name if around else "", *asked) for word in words_of(name)]
    return "epoch" in said


def _minds_its_tail(window: Window) -> bool:
    """Does the function divide by the size: how many whole windows there are, say?

    In the loop itself that may be for the log, but for the length of something.
    """
    loop = window.step.loop
    if loop is None or loop.node is None:
        return False
    around = window.unit.functions_around(loop.node.lineno)[-1:]  # type: ignore[attr-defined]
    text = "".join(map(window.unit.text_of, around)) or window.unit.source.text
    size = re.escape(window.text(window.divisor))
    divided = rf"(?://|%)\s*{size}(?!\w)"
    return any(re.search(divided, each) for each in text.split(loop.text, 1)) or (
        re.search(rf"\blen\([^\n]*{divided}", loop.text) is not None
    )


def _beginning(window: Window, name: str = "") -> Beginning | None:
    """Return how what the window counts, or the number of this name, begins."""
    loop = window.step.loop
    if loop is None or not isinstance(loop.node, ast.For | ast.While):
        return None
    if loop.unit is not None and loop.unit is not window.unit:
        return None
    around = window.unit.functions_around(loop.node.lineno)
    body = around[-1].body if around else window.unit.source.tree.body
    left = window.left
    name = name or path_of(left.args[0] if isinstance(left, ast.Call) else left)
    return begins(body, loop.node, name)


def first_number(window: Window, name: str) -> int | None:
    """Return what a number counted by hand is where the guard asks for it first, if that is known.

    Only where each run of the loop begins with it: one that runs on is off in a run's first
    window at most.
    """
    beginning, loop = _beginning(window, name), window.step.loop
    if beginning is None or loop is None or not beginning.anew:
        return None
    node, value = loop.node, beginning.value
    if not isinstance(node, ast.For | ast.While) or not counts_up(node, name):
        return None
    counted = [each for each in node.body if name in map(path_of, targets([each]))]
    if len(counted) != 1 or not isinstance(counted[0], ast.AugAssign | ast.Assign):
        return None
    added = counted[0].value
    one = added.right if isinstance(added, ast.BinOp) else added
    if not is_one(one) or not isinstance(value, ast.Constant) or type(value.value) is not int:
        return None
    if not node.lineno <= window.test.lineno <= (node.end_lineno or 0):
        return None
    return value.value + (counted[0].lineno < window.test.lineno)


def wrong_tally(window: Window, *, divided: bool) -> tuple[str, str] | None:
    """Return what is wrong with a tally's test and what to do about it, if it is wrong."""
    beginning, loop = _beginning(window), window.step.loop
    if beginning is None or loop is None or window.step.unit is not window.unit:
        return None
    node, name = loop.node, path_of(window.left)
    line = window.step.spot.line
    if not isinstance(node, ast.For | ast.While) or not name:
        return None
    if not any(each.lineno <= line <= (each.end_lineno or 0) for each in node.body):
        return None  # in a function that the loop calls
    table = rounds_reaching(node, name, window.divisor, beginning.value, line)
    size = window.text(window.divisor)
    if guards.is_never(table) and _is_set_first(node, name):
        return "can never be true", f"set {name} back after the step, and not in each round"
    let_pass = f"let {size} micro-batches pass from one step to the next"
    if guards.is_never(table) and beginning.value is not None:
        return "can never be true", let_pass
    if not divided or not table:
        return None
    if guards.is_always(table):
        return "is true at every micro-batch", let_pass
    lengths = {size - length for size, column in table.items() for length in _lengths(column)}
    if lengths == {-1}:
        above = isinstance(window.test, ast.Compare) and isinstance(window.test.ops[0], ast.Gt)
        asks = above and window.text(window.test) == f"{name} > {size}"
        return _ONE_TOO_MANY.format(size=size), f"write `{name} >= {size}`" if asks else let_pass
    if lengths == {1} and all(size > 2 for size in table):
        return _ONE_TOO_FEW.format(size=size), let_pass
    return None


def _is_set_first(loop: ast.For | ast.While, name: str) -> bool:
    """Does each round begin by setting it?"""
    return any(name in map(path_of, targets([each])) for each in loop.body[:1])


def _lengths(column: list[bool]) -> list[int]:
    """Return how many rounds lie between one window's end and the next."""
    ends = [number for number, each in enumerate(column) if each]
    return [after - before for before, after in pairwise(ends)]
