"""ZG202: gradients of weights that are kept round by round, and cleared in none.

`fisher[name] += p.grad ** 2`, or `grads.append([p.grad.clone() for p in net.parameters()])`, behind
a backward in the same loop: from the second round on it is the sum of all losses so far.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.endings import leaves
from zerograd.static.engine.frame import path_of
from zerograd.static.engine.stores import targets

if TYPE_CHECKING:
    from zerograd.static.engine.program import Program
    from zerograd.static.engine.unit import Unit

Round = ast.For | ast.AsyncFor | ast.While

# whoever says one of these in the loop may clear, or has the gradients used by a step
_CLEARS = re.compile(
    r"zero|clear|reset|step\(|autograd|functional_call|\.grad\s*=[^=]|del \w+(?:\.\w+)*\.grad"
    r"|update\w*\([^)]*(?:model|net)|inputs="
)
_KEEPS = frozenset(("append", "extend", "appendleft", "put"))


def kept_while_growing(program: Program) -> Iterator[Finding]:
    """Yield where gradients of a network are kept in each round of a loop that clears none."""
    unit = program.main
    text = unit.source.text
    if ".grad" not in text or "parameters(" not in text:
        return
    rows = unit.places.rows(".backward(")
    told: set[int] = set()
    for loop in unit.statements() if rows else ():
        if not isinstance(loop, Round) or not any(
            loop.lineno < row <= (loop.end_lineno or 0) for row in rows
        ):
            continue
        for owner in _kept_in(unit, loop):
            if owner.lineno not in told:
                told.add(owner.lineno)
                yield _finding(program, owner)


def _kept_in(unit: Unit, loop: Round) -> Iterator[ast.Attribute]:
    """Yield the gradients that each round keeps after its own backward."""
    body = _always(loop.body)
    at = next((at for at, each in enumerate(body) if _goes_back(each)), None)
    if at is None or leaves(unit, loop.body) or _CLEARS.search(unit.text_of(loop)):
        return
    given = {path_of(each) for each in targets(loop.body)}
    if isinstance(loop, ast.For | ast.AsyncFor):
        given |= {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    for each in body[at + 1 :]:
        yield from _kept_by(each, {}, given)


def _always(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return what is done in every round, without the `with` around it."""
    found: list[ast.stmt] = []
    for each in body:
        if isinstance(each, ast.With | ast.AsyncWith):
            found += _always(each.body)
        else:
            found.append(each)
    return found


def _goes_back(each: ast.stmt) -> bool:
    call = each.value if isinstance(each, ast.Expr) else None
    return isinstance(call, ast.Call) and path_of(call.func).endswith(".backward")


def _kept_by(
    each: ast.stmt, parameters: dict[str, str], given: set[str]
) -> Iterator[ast.Attribute]:
    """Yield the gradients of parameters that a statement adds to what was there before the loop."""
    if isinstance(each, ast.For):
        inner = parameters | _parameters(each.target, each.iter)
        for part in each.body:
            yield from _kept_by(part, inner, given)
    elif isinstance(each, ast.If) and ".grad" in ast.unparse(each.test) and not each.orelse:
        for part in each.body:  # one that has none is passed over
            yield from _kept_by(part, parameters, given)
    else:
        holder, value = _kept(each)
        root = path_of(holder).split("[", 1)[0] if holder is not None else ""
        if value is None or not root or root in given or root.split(".", 1)[0] in parameters:
            return
        for source in ast.walk(value):
            if isinstance(source, ast.comprehension):
                parameters = parameters | _parameters(source.target, source.iter)
        for used in ast.walk(value):
            if (
                isinstance(used, ast.Attribute)
                and used.attr == "grad"
                and isinstance(used.value, ast.Name)
                and used.value.id in parameters
                and parameters[used.value.id].split(".", 1)[0] not in given
            ):
                yield used


def _kept(each: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """Return what a statement adds to, and what it adds."""
    if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add):
        return _bare(each.target), each.value
    if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Subscript):
        return _bare(each.targets[0]), each.value
    call = each.value if isinstance(each, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None, None
    keeps = call.func.attr in _KEEPS and call.args
    return (_bare(call.func.value), call.args[0]) if keeps else (None, None)


def _bare(target: ast.expr) -> ast.expr:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def _parameters(target: ast.expr, source: ast.expr) -> dict[str, str]:
    """Return the names that go through a network's parameters, with the network."""
    calls = [
        each
        for each in ast.walk(source)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("parameters", "named_parameters")
    ]
    if not calls:
        return {}
    assert isinstance(calls[0].func, ast.Attribute)
    owner = path_of(calls[0].func.value)
    names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
    return dict.fromkeys(names, owner) if owner else {}


def _finding(program: Program, owner: ast.Attribute) -> Finding:
    rule = BY_CODE["ZG202"]
    names = {"owner": path_of(owner.value)}
    return Finding(
        rule=rule,
        spot=program.main.source.spot(owner),
        message=rule.summary.format_map(names),
        advice="clear the gradients in each iteration: zero_grad() before its backward()",
        owner=names["owner"],
    )
