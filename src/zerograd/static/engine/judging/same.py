"""One of several optimizers: is the one that steps the one that was cleared?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.verdicts import Verdict
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.text.parts import names_below

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets

_OF_ALL = frozenset(("values", "keys", "items"))  # methods of a dict that leave none out


def is_the_same_one(step: Happening, verdict: Verdict, buckets: Buckets) -> bool:
    """Is what was cleared the one that steps: the same name, and no index that may differ?

    A network and its optimizer that are looked up alike, `nets[i]` and `opts[i]`, go together.
    Of a list that is cleared whole each one is cleared.
    """
    lost = verdict.state.lost
    mine = _receiver(step)
    among = _gone_over(step) or mine.partition("[")[0]
    clears = [each for each in buckets.happenings if lost is not None and each.spot == lost.clear]
    return bool(clears) and all(
        (other := _receiver(each)) == mine
        or _index(other) == _index(mine) != ""
        or ("[" not in other + mine and other.split(".")[0] == mine.split(".")[0])
        or _gone_over(each) == among
        or _is_of_all(each, step, buckets)
        for each in clears
    )


def _is_of_all(clear: Happening, step: Happening, buckets: Buckets) -> bool:
    """Is a network cleared, the same in each round, that is all that any of them holds?"""
    if clear.optimizer is not None or clear.event is None or step.event is None:
        return False
    held = buckets.holdings[step.event.owner]
    return (
        bool(held)
        and set(held) <= set(clear.event.buckets)
        and "[" not in _receiver(clear)
        and _receiver(clear).split(".")[0] not in _bound_around(clear)
    )


def _bound_around(each: Happening) -> set[str]:
    """Return the names that the loops around bind anew in each of their rounds."""
    return {
        one.id
        for loop in each.unit.statements()
        if isinstance(loop, ast.For) and loop.lineno <= each.spot.line <= (loop.end_lineno or 0)
        for one in ast.walk(loop.target)
        if isinstance(one, ast.Name)
    }


def _index(receiver: str) -> str:
    """Return how it is looked up: of `self.nets[kind][i]`, `[kind][i]`."""
    return receiver[receiver.index("[") :] if receiver.endswith("]") else ""


def _receiver(each: Happening) -> str:
    call = each.node
    if each.scaler and each.kind is EventKind.STEP and isinstance(call, ast.Call) and call.args:
        return each.unit.source.segment(call.args[0])
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return each.unit.source.segment(call.func.value)
    return each.name or path_of(call)


def _gone_over(each: Happening) -> str:
    """Return the list or dict of which a loop does this to every item, or nothing.

    `for opt in opts.values(): opt.step()`, `for name in opts: opts[name].step()`.
    """
    around = [
        loop
        for loop in each.unit.statements()
        if isinstance(loop, ast.For) and loop.lineno <= each.spot.line <= (loop.end_lineno or 0)
    ]
    if not around:
        return ""
    loop = max(around, key=lambda one: one.lineno)
    over = loop.iter
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        over = over.func.value if over.func.attr in _OF_ALL and not over.args else over
    told = names_below(loop.target)
    among = path_of(over)
    receiver = _receiver(each)
    is_item = receiver in told or receiver in (f"{among}[{name}]" for name in told)
    return among if is_item else ""
