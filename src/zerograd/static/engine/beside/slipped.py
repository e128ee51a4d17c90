"""ZG401: a backward that slipped into a branch, while the step behind it is in none.

    if self.regularized:
        loss = loss + self.penalty()
        loss.backward()
    optimizer.step()

The branch adds to a loss that is there in any case, or another branch does: what has been computed
without the backward is meant to be used as well. A flag around a backward alone may switch the
training off.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.beside.precision import blocks, may_fill
from zerograd.static.engine.identity.endings import leaves
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.words import is_optimizer_name, words_of

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

MESSAGE = "{owner}.step() finds no gradients {where}: {loss} goes backward in another branch alone"
ADVICE = "send {loss} backward behind the whole `if`, before {owner}.step()"
_ALIKE = frozenset(("ZG102", "ZG401"))
# who asks for one of these may train in one of the two cases only
_TRAINING = frozenset(
    (
        *("train", "training", "trains", "eval", "evaluate", "evaluating", "test", "testing"),
        *("phase", "mode", "val", "valid", "validation", "debug", "dry", "update", "learn"),
        *("grad", "backward", "optimize", "finite", "isfinite", "isnan", "nan"),
    )
)


def slipped_into_a_branch(program: Program, told: list[Finding]) -> list[Finding]:
    """Return the findings, with the steps behind such a branch told of as that and nothing else."""
    found = list(_slipped(program))
    lines = {each.spot.line for each in found}
    return [
        *(each for each in told if each.spot.line not in lines or each.rule.code not in _ALIKE),
        *found,
    ]


def _slipped(program: Program) -> Iterator[Finding]:
    """Yield the steps behind such a branch, where nothing else fills since the clear."""
    unit = program.main
    for function in unit.functions_saying(".backward("):
        for block in blocks(unit, function.body):
            for at, part in enumerate(block):
                if isinstance(part, ast.If) and ".backward(" in unit.text_of(part):
                    yield from _behind(program, [*_plain(block[:at])], part, block[at + 1 :])


def _behind(
    program: Program, before: list[ast.stmt], part: ast.If, after: list[ast.stmt]
) -> Iterator[Finding]:
    unit = program.main
    branches = _branches(part)
    sent = {name for _, body in branches for name in _sent(body)}
    clear = next((each for each in reversed(before) if _cleared(each)), None)
    if len(sent) != 1 or clear is None or _may_be_off(branches, *sent):
        return
    (loss,) = sent
    bare = [(where, body) for where, body in branches if not may_fill(_text(unit, body))]
    bare = [(where, body) for where, body in bare if not leaves(unit, body)]
    if not bare or not _is_added_to(loss, branches) or not _is_computed(loss, before):
        return
    between = before[before.index(clear) + 1 :]
    for each in _plain(after):
        owner = _stepped(each)
        if owner and _is_of(_cleared(clear), owner) and not may_fill(_text(unit, between)):
            yield _finding(program, each, owner, loss, _where(unit, bare[0][0], part))
            return
        between.append(each)


def _branches(part: ast.If) -> list[tuple[ast.expr | None, list[ast.stmt]]]:
    """Return the tests of a chain with what stands under each, the rest of it last."""
    found: list[tuple[ast.expr | None, list[ast.stmt]]] = [(part.test, part.body)]
    while len(part.orelse) == 1 and isinstance(part.orelse[0], ast.If):
        part = part.orelse[0]
        found.append((part.test, part.body))
    return [*found, (None, part.orelse)]


def _plain(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block, and those of its `with` blocks among them."""
    for each in body:
        if isinstance(each, ast.With):
            yield from _plain(each.body)
        else:
            yield each


def _call(node: ast.stmt) -> ast.Call | None:
    return node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None


def _sent(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names of the losses that a block sends back in any case."""
    for each in _plain(body):
        call = _call(each)
        if call is None or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "backward":
            scaled = call.func.value  # `scaler.scale(loss).backward()` too
            of = scaled.args[:1] if isinstance(scaled, ast.Call) else [scaled, *call.args[:1]]
            yield from (one.id for one in of if isinstance(one, ast.Name) and "loss" in one.id)


def _is_added_to(loss: str, branches: list[tuple[ast.expr | None, list[ast.stmt]]]) -> bool:
    """Does a branch add to the loss as it is: the one that sends it back, or one that does not?"""
    return any(
        (isinstance(each, ast.AugAssign) and _is(each.target, loss))
        or (
            isinstance(each, ast.Assign)
            and _is(each.targets[0], loss)
            and isinstance(each.value, ast.BinOp)
            and isinstance(each.value.op, ast.Add)
            and any(_is(side, loss) for side in (each.value.left, each.value.right))
        )
        for _, body in branches
        for each in _plain(body)
    )


def _is_computed(loss: str, before: list[ast.stmt]) -> bool:
    """Is it what a call gave, and no zero to begin with?"""
    given = [
        each.value for each in before if isinstance(each, ast.Assign) and _is(each.targets[0], loss)
    ]
    calls = [each for value in given for each in parts_below(value) if isinstance(each, ast.Call)]
    return any("zeros" not in path and "tensor" not in path for path in map(_path, calls))


def _path(call: ast.Call) -> str:
    return path_of(call.func)


def _may_be_off(branches: list[tuple[ast.expr | None, list[ast.stmt]]], loss: str) -> bool:
    """Does a test ask for the loss itself, or whether this is training?"""
    names = [
        each.id if isinstance(each, ast.Name) else getattr(each, "attr", "")
        for test, _ in branches
        if test is not None
        for each in parts_below(test)
    ]
    return loss in names or any(not _TRAINING.isdisjoint(words_of(name)) for name in names)


def _cleared(node: ast.stmt) -> str:
    """Return what a statement clears, if it is a clear."""
    call = _call(node)
    path = path_of(call.func) if call is not None else ""
    return path.removesuffix(".zero_grad") if path.endswith(".zero_grad") else ""


def _stepped(node: ast.stmt) -> str:
    """Return the optimizer that a statement steps, past its scaler if there is one."""
    call = _call(node)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return ""
    owner = path_of(call.args[0]) if call.args else path_of(call.func.value)
    return owner if is_optimizer_name(owner) else ""


def _is_of(cleared: str, owner: str) -> bool:
    """Is it this optimizer, what keeps it, or a network that was cleared?"""
    return owner == cleared or owner.startswith(f"{cleared}.") or not is_optimizer_name(cleared)


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _text(unit: Unit, body: list[ast.stmt]) -> str:
    return "\n".join(map(unit.text_of, body))


def _where(unit: Unit, test: ast.expr | None, part: ast.If) -> str:
    if test is not None:
        return f"if `{unit.source.segment(test)}`"
    return f"where not `{unit.source.segment(part.test)}`"


def _finding(program: Program, step: ast.stmt, owner: str, loss: str, where: str) -> Finding:
    names = {"owner": owner, "loss": loss, "where": where}
    return Finding(
        rule=BY_CODE["ZG401"],
        spot=program.main.source.spot(step),
        message=MESSAGE.format_map(names),
        advice=ADVICE.format_map(names),
        owner=owner,
    )
