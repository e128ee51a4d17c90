"""ZG203: a loop that clears an optimizer and goes back, and has nothing that could step it.

Who made the optimizer, and who else has it, does not matter: the next round clears what no step of
this one has used. Others may be stepped in the loop, if each of them clears what it steps on after
that loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.acting import acts
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.judging.handovers import is_used, last_part
from zerograd.static.engine.judging.unused import NEVER_STEPPED
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.places import has_row
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import (
    is_optimizer_name,
    is_scaler_name,
    is_scheduler_name,
    words_of,
)

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_TOLD = frozenset(("ZG203", "ZG501"))
MOST_STEPS = 32  # lines that step: of more of them, each is looked at for too many loops
NOT_HERE = "{owner} is cleared in every iteration, but not stepped in this loop"

# Who looks at gradients, measures, or has others train, has no need of a step.
_OTHERWISE = re.compile(
    r"\.grad\b(?!\.(?:data\.)?zero_\(|\s+is\b)|_hook\(|timeit|perf_counter|profil|(?<!cudnn\.)benchmark|synchronize\(|memory_|deepspeed"
    r"|def test_|autograd|optimizer_step|apply_grad|step\w*\s*=|minimize\("
    r"|clip_grad_norm_?\([^\n]*\binf\b"
)
_BY_A_SCALER = re.compile(r"\b(?:\w+\.)*\w*scaler\w*\.(?:step|update)\(")
_AUTOGRAD = re.compile(r"\bautograd\.grad\b|\bautograd\b(?= import|\.Variable)")  # of a penalty
_VARIABLE = re.compile(r"\bautograd\b(?= import Variable *$|\.Variable\b)", re.MULTILINE)  # of old
# what is called for its own sake and leaves weights alone
_LOOKS = frozenset(
    (
        *("print", "append", "extend", "update", "add", "log", "info", "debug", "write", "item"),
        *("add_scalar", "add_scalars", "log_dict", "set_postfix", "set_description", "zero_grad"),
        *("backward", "train", "eval", "to", "empty_cache", "scale", "flush", "format", "step"),
    )
)
_SHOWS = frozenset(("log", "plot", "show", "draw", "save", "print", "display", "visualize"))


def never_stepped(program: Program, told: Collection[Finding]) -> Iterator[Finding]:
    """Yield the clears of optimizers that are filled in the same rounds, and stepped in none."""
    unit = program.main
    text = unit.source.text
    if ".zero_grad(" not in text or ".backward(" not in text:
        return
    lines = {each.spot.line for each in told if each.rule.code in _TOLD and each.certain}
    cleared, filled = unit.places.rows("zero_grad"), unit.places.rows("backward")
    for loop in unit.loops():
        first, last = loop.lineno, loop.end_lineno or 0
        if not (has_row(cleared, first, last) and has_row(filled, first, last)):
            continue  # most loops
        for clear in _cleared(loop.body):
            owner = path_of(clear.func).removesuffix(".zero_grad")
            spot = unit.source.spot(clear)
            others = _stepped_beside(loop, owner)
            if others and not _has_a_loss_of_its_own(loop, owner):
                continue
            if spot.line not in lines and _is_left_alone(unit, loop, owner, others):
                # asked late: it is slow, and few come to it
                if _OTHERWISE.search((_AUTOGRAD if others else _VARIABLE).sub("", text)):
                    return
                message = NOT_HERE if _is_stepped(unit, owner) else NEVER_STEPPED
                yield _finding(program, owner, clear, message)


def _cleared(body: list[ast.stmt]) -> list[ast.Call]:
    """Return the clears of optimizers by name in each round, if each of them goes back as well."""
    calls = list(_done(body))
    if not any(_last(each) == "backward" for each in calls):
        return []
    return [
        each
        for each in calls
        if path_of(each.func).endswith(".zero_grad")
        and is_optimizer_name(path_of(each.func).split(".")[-2])
    ]


def _is_stepped(unit: Unit, owner: str) -> bool:
    """Does the file step it by its name anywhere, but in a comment?"""
    return any(unit.places.coded(f"{last_part(owner)}.step"))


def _done(body: list[ast.stmt]) -> Iterator[ast.Call]:
    """Yield what each round does for its own sake."""
    for each in body:
        if isinstance(each, ast.With):
            yield from _done(each.body)
        elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
            yield each.value


def _last(call: ast.Call) -> str:
    return getattr(call.func, "attr", "")


def _stepped_beside(loop: ast.For | ast.While, owner: str) -> frozenset[str]:
    """Return the other optimizers that each round clears and steps."""
    calls = list(_done(loop.body))
    cleared = {path_of(each.func) for each in calls if _last(each) == "zero_grad"}
    stepped = {_stepped_by(each) for each in calls if _last(each) == "step"} - {owner, ""}
    return frozenset(each for each in stepped if f"{each}.zero_grad" in cleared)


def _stepped_by(call: ast.Call) -> str:
    """Return who is stepped by a call of `step`, by a scaler too."""
    owner = path_of(call.func).removesuffix(".step")
    return path_of(call.args[0]) if is_scaler_name(owner) and call.args else owner


def _has_a_loss_of_its_own(loop: ast.For | ast.While, owner: str) -> bool:
    """Does a loss follow its clear at once, and another's clear, loss and step that loss?

    So no other optimizer is there for the loss, whatever weights it holds.
    """
    acts = [each for each in _done(loop.body) if _last(each) in ("zero_grad", "backward", "step")]
    acts = [each for each in acts if _last(each) != "step" or not _is_of_a_schedule(each)]
    at = [path_of(each.func) for each in acts].index(f"{owner}.zero_grad")
    order = [_last(each) for each in (*acts[at + 1 :], *acts[:at])]
    order = [kind for kind, before in zip(order, ["", *order], strict=False) if kind != before]
    return order[:4] == ["backward", "zero_grad", "backward", "step"]


def _is_left_alone(
    unit: Unit, loop: ast.For | ast.While, owner: str, others: frozenset[str]
) -> bool:
    """Is nothing in the loop such that it could step: by its name, or by being handed it?"""
    name = owner.rsplit(".", 1)[-1]
    text = _without_backward(unit.text_of(loop))
    if others:
        text = _BY_A_SCALER.sub("(", text)
    for other in others:
        text = text.replace(f"{other}.step(", "(")
    if acts(text, unit):
        return False
    if _is_stepped(unit, owner) and not _is_stepped_apart(unit, loop, name):
        return False
    for each in statements_in(loop.body):
        call = each.value if isinstance(each, ast.Expr) else None
        if isinstance(call, ast.Call) and not (_only_looks(call) or _stepped_by(call) in others):
            return False
    around = parts_below(_outermost(unit, loop))
    return not any(is_used(each, {name}, set(), trained=True) for each in around)


def _is_stepped_apart(unit: Unit, loop: ast.For | ast.While, name: str) -> bool:
    """Is each step of it for losses of its own: in a loop, or function, that clears and goes back?

    None of the functions that step is called in this loop.
    """
    first, last = loop.lineno, loop.end_lineno or 0
    lines = list(dict.fromkeys(unit.places.rows(f"{name}.step")))
    if has_row(lines, first, last) or len(lines) > MOST_STEPS:
        return False
    for line in lines:
        around: list[ast.AST] = [*unit.functions_around(line)]
        called = (getattr(each, "name", "") for each in around)
        if any(f"{each}(" in unit.text_of(loop) for each in called):
            return False
        around += [each for each in unit.loops() if each.lineno <= line <= (each.end_lineno or 0)]
        closest = max(around, key=lambda each: getattr(each, "lineno", 0), default=None)
        if closest is None or _holds(closest, first, last):
            return False
        text = unit.text_of(closest)
        if f"{name}.zero_grad(" not in text or ".backward(" not in text:
            return False
    return bool(lines)


def _holds(outer: ast.AST, first: int, last: int) -> bool:
    lines = getattr(outer, "lineno", 0), getattr(outer, "end_lineno", 0)
    return lines[0] <= first and last <= lines[1]


def _outermost(unit: Unit, loop: ast.For | ast.While) -> ast.AST:
    """Return the loop that is around all others around this one, or this one."""
    line = loop.lineno
    around = (each for each in unit.loops() if each.lineno <= line <= (each.end_lineno or 0))
    return min(around, key=lambda each: each.lineno, default=loop)


def _without_backward(text: str) -> str:
    return text.replace(".backward(", "(")


def _only_looks(call: ast.Call) -> bool:
    path = path_of(call.func)
    last = _last(call) or path
    if last == "step":
        return _is_of_a_schedule(call)
    if last == "zero_" and ".grad." in path:
        return True  # of some weights: what is left has no step either
    if last.endswith("_") and "step" not in last:
        return True  # `input.data.copy_(batch)`: where no gradient is read, none is used in place
    return last in _LOOKS or not _SHOWS.isdisjoint(words_of(last))


def _is_of_a_schedule(step: ast.Call) -> bool:
    return is_scheduler_name(path_of(step.func).rsplit(".", 1)[0])


def _finding(program: Program, owner: str, clear: ast.Call, message: str) -> Finding:
    rule = BY_CODE["ZG203"]
    names = {"owner": owner}
    return Finding(
        rule=rule,
        spot=program.main.source.spot(clear),
        message=message.format_map(names),  # what the loss fills was not asked
        advice=rule.advice.format_map(names),
        owner=owner,
    )
