"""ZG504: a window whose guard stands around the backward too, so that one micro-batch goes back.

    loss = criterion(model(x), y) / accumulate
    if (i + 1) % accumulate == 0:
        loss.backward()
        optimizer.step()

What the other micro-batches have computed is thrown away, though nothing clears it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.remainders import is_modulo
from zerograd.static.engine.text.sizes import is_of_a_window
from zerograd.static.engine.text.stores import names_stored, statements_in
from zerograd.static.engine.text.words import is_optimizer_name, is_scaler_name

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_MESSAGE = (
    "the condition `{condition}` stands around {loss}.backward() too: "
    "all micro-batches of a window but one are lost"
)
_ADVICE = "go backward before it, at every micro-batch, and leave the step where it is"
# what is called so of a network leaves it as it was, for all that its losses hold
_LEAVES = frozenset(("train", "eval", "to", "zero_grad", "requires_grad_", "cuda"))


def withheld(program: Program) -> Iterator[Finding]:
    """Yield the backwards of this file that such a guard keeps from all rounds but one."""
    unit = program.main
    text = unit.source.text
    if "%" not in text or "backward(" not in text:
        return
    for loop in unit.loops():
        if unit.text_of(loop).count("backward(") != 1:
            continue
        for at, guard in enumerate(loop.body):
            if not isinstance(guard, ast.If) or not _steps(guard):
                continue
            size = _size(guard.test)
            call = _backward(guard)
            loss = _loss(call) if call is not None else ""
            if (
                size is not None
                and call is not None
                and loss
                and loss not in names_stored(guard.body)
                and _is_of_this_round(loss, loop, before := [*_plain(loop.body[:at])])
                and is_of_a_window("".join(map(unit.text_of, before)), unit.source.segment(size))
            ):
                yield _finding(program, guard.test, call, loss)


def _size(test: ast.expr) -> ast.expr | None:
    """Return what a counter is divided by, if the test asks for a remainder of zero."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return next((size for each in test.values if (size := _size(each)) is not None), None)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        left = test.operand
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        left = test.left
    else:
        return None
    return left.right if isinstance(left, ast.BinOp) and is_modulo(left) else None


def _steps(guard: ast.If) -> bool:
    return any(
        isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and isinstance(each.value.func, ast.Attribute)
        and _name_of(each.value.func) == "step"
        and (is_optimizer_name(owner := path_of(each.value.func.value)) or is_scaler_name(owner))
        for each in statements_in(guard.body)
    )


def _backward(guard: ast.If) -> ast.Call | None:
    """Return the backward that stands in the branch, under nothing else."""
    for each in guard.body:
        call = each.value if isinstance(each, ast.Expr) else None
        if isinstance(call, ast.Call) and _name_of(call.func) in ("backward", "manual_backward"):
            return call
    return None


def _name_of(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else path_of(func)


def _loss(call: ast.Call) -> str:
    """Return the name that goes back: of `loss`, of `scaler.scale(loss)` and of what is handed."""
    assert isinstance(call.func, ast.Attribute | ast.Name)
    at: ast.expr = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    if isinstance(at, ast.Call) and len(at.args) == 1:
        at = at.args[0]  # scaler.scale(loss)
    elif call.args and isinstance(call.args[0], ast.Name | ast.Attribute):
        at = call.args[0]  # accelerator.backward(loss)
    if isinstance(at, ast.Attribute):
        return f".{at.attr}"
    return at.id if isinstance(at, ast.Name) else ""


def _plain(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block, and those that stand in a `with` there."""
    for each in block:
        if isinstance(each, ast.With):
            yield from _plain(each.body)
        else:
            yield each


def _is_of_this_round(loss: str, loop: ast.For | ast.While, before: list[ast.stmt]) -> bool:
    """Is it computed anew in each round, from nothing that the rounds before have added up?"""
    sources, made = {loss}, False
    for each in reversed(before):
        stored = names_stored([each]) & sources
        if not stored:
            continue
        if isinstance(each, ast.AugAssign) or (loss in stored and not isinstance(each, ast.Assign)):
            return False  # added to, or made in a branch
        sources |= _names(each.value if isinstance(each, ast.Assign) else each)
        made = made or loss in stored
    return made and not sources & _carried(loop)


def _carried(loop: ast.For | ast.While) -> set[str]:
    """Return what the rounds hand on: what a round makes of its last value, adds to, or fills.

    `total = total + loss`, `losses.append(loss)`, `gather(losses, loss)`.
    """
    found: set[str] = set()
    anew = _names(loop.target) if isinstance(loop, ast.For) else set()
    for each in sorted(statements_in(loop.body), key=lambda part: getattr(part, "lineno", 0)):
        if isinstance(each, ast.AugAssign):
            found |= names_stored([each])
        elif isinstance(each, ast.Assign):
            here = names_stored([each])
            found |= (_names(each.value) & here) - anew
            anew |= here
        elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
            found |= _filled(each.value) - anew
    return found


def _filled(call: ast.Call) -> set[str]:
    """Return what a call may put something into: whose method it is, and what it is handed."""
    func = call.func
    given = list(call.args)
    if isinstance(func, ast.Attribute) and func.attr not in _LEAVES:
        given.append(func.value)
    return {name for each in given if (name := _last(each)) not in ("", "self")}


def _last(node: ast.expr) -> str:
    """Return a name, or the last attribute as `.name`."""
    return f".{node.attr}" if isinstance(node, ast.Attribute) else path_of(node)


def _names(node: ast.AST) -> set[str]:
    """Return the names in it, and the attributes as `.name`."""
    return {
        each.id if isinstance(each, ast.Name) else f".{each.attr}"
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute)
    }


def _finding(program: Program, test: ast.expr, call: ast.Call, loss: str) -> Finding:
    source = program.main.source
    names = {"condition": source.segment(test), "loss": loss.removeprefix(".")}
    return Finding(
        rule=BY_CODE["ZG504"],
        spot=source.spot(call),
        message=_MESSAGE.format_map(names),
        advice=_ADVICE,
        owner=names["loss"],
    )
