"""ZG304: gradients that are averaged, masked or scaled by hand after the step has used them.

A loop clears, goes backward and steps, and only then changes what the step has used. The next
round clears it before anything is added, so the change does nothing: replicas that were to be
kept together by it drift apart, weights that were to be masked move.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_CHANGED = (
    "gradients are changed after {owner}.step() has used them, and cleared before the next "
    "backward(): the change does nothing"
)
_ADVICE = "change them between backward() and {owner}.step()"
_REDUCING = ("reduce", "allreduce", "all_reduce", "sync")
_CLIPPING = ("clamp_", "clip_")
_KEEPING = frozenset(("zero_", "detach_", "requires_grad_"))  # no change of what is in them


def changed_after_step(program: Program) -> Iterator[Finding]:
    """Yield the loops over parameters that change gradients too late for the step."""
    unit = program.main
    text = unit.source.text
    if ".grad" not in text or ".step(" not in text or "parameters()" not in text:
        return  # most files
    helpers = {each.name: each for each in unit.functions_saying(".grad")}
    for loop in unit.loops():
        if unit.mentions(loop, ".step("):
            yield from _changed_in(unit, loop.body, helpers)


def _changed_in(
    unit: Unit, body: list[ast.stmt], helpers: dict[str, FunctionNode]
) -> Iterator[Finding]:
    """Yield what changes the gradients of a round last, if the round begins with their clear."""
    calls = [_called(part) for part in body]
    steps = [at for at, (_, name) in enumerate(calls) if name == "step"]
    clears = [at for at, (_, name) in enumerate(calls) if name == "zero_grad"]
    filled = [at for at, (_, name) in enumerate(calls) if name == "backward"]
    if len(steps) != 1 or len(clears) != 1 or len(filled) != 1:
        return
    (step,), (clear,), (backward,) = steps, clears, filled
    if not backward < step or backward < clear < step:
        return
    if any(unit.mentions(part, ".grad") for part in body[:backward]):
        return  # somebody reads them before they are cleared
    last = clear if clear > step else len(body)
    for at, part in enumerate(body[step + 1 : last], step + 1):
        model, change = _changes(part, helpers)
        if change is None:
            continue
        if any(unit.mentions(each, "grad") for each in body[at + 1 :] if each is not body[clear]):
            return  # what is changed is looked at, or handed on
        owner = calls[step][0]
        if calls[clear][0] in (owner, model):
            rule = BY_CODE["ZG304"]
            yield Finding(
                rule=rule,
                spot=unit.source.spot(change),
                message=_CHANGED.format(owner=owner),
                advice=_ADVICE.format(owner=owner),
            )
        return


def _called(part: ast.stmt) -> tuple[str, str]:
    """Return whose method a statement calls, and which, if that is all it does."""
    call = part.value if isinstance(part, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return "", ""
    handed = call.func.attr == "step" and call.args  # scaler.step(optimizer)
    return path_of(call.args[0] if handed else call.func.value), call.func.attr


def _changes(part: ast.stmt, helpers: dict[str, FunctionNode]) -> tuple[str, ast.AST | None]:
    """Return the network whose gradients this changes, and does nothing else, and where."""
    nothing = "", None
    if isinstance(part, ast.For):
        parameter, model = _each_of(part)
        work = list(_work(part.body))
        made = {name for each in work if (name := _made_of(each, parameter))}
        work = [each for each in work if not _is_for_itself(each)]
        if not parameter or not work or not all(_is_change(each, parameter, made) for each in work):
            return nothing
        return model, work[0]
    call = part.value if isinstance(part, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return nothing
    helper = helpers.get(call.func.id)
    if helper is None or not call.args or not helper.args.args:
        return nothing
    loops = [each for each in helper.body if isinstance(each, ast.For)]
    others = [each for each in helper.body if not isinstance(each, ast.For | ast.Assign | ast.Expr)]
    if len(loops) != 1 or others or _changes(loops[0], {})[0] != helper.args.args[0].arg:
        return nothing
    if any(_called(each)[1] in _CLIPPING for each in _work(loops[0].body)):
        return nothing  # told there, as a clip that comes too late
    return path_of(call.args[0]), part


def _each_of(loop: ast.For) -> tuple[str, str]:
    """Return the name of the parameter and of its network: `for p in net.parameters()`."""
    call = loop.iter
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return "", ""
    name, target = call.func.attr, loop.target
    if name == "named_parameters" and isinstance(target, ast.Tuple):
        target = target.elts[-1]
    if name not in ("parameters", "named_parameters") or not isinstance(target, ast.Name):
        return "", ""
    return target.id, path_of(call.func.value)


def _work(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield what is done for each parameter, under whatever condition."""
    for part in body:
        if isinstance(part, ast.If):
            yield from _work([*part.body, *part.orelse])
        elif not isinstance(part, ast.Pass | ast.Continue):
            yield part


def _is_for_itself(part: ast.stmt) -> bool:
    """Does it only give a name to something: `mask = masks[name]`?"""
    return isinstance(part, ast.Assign) and all(isinstance(each, ast.Name) for each in part.targets)


def _made_of(part: ast.stmt, parameter: str) -> str:
    """Return the name that stands for what is made of the gradient: `g = p.grad.data.numpy()`."""
    if not isinstance(part, ast.Assign) or len(part.targets) != 1 or not _is_for_itself(part):
        return ""
    made = any(_is_gradient(each, parameter) for each in parts_below(part.value))
    return path_of(part.targets[0]) if made else ""


def _is_change(part: ast.stmt, parameter: str, made: set[str]) -> bool:
    """Does it change the gradient of the parameter in its place, or put in what is made of it?"""
    if isinstance(part, ast.AugAssign):
        return _is_gradient(part.target, parameter)
    if isinstance(part, ast.Assign):
        return all(_is_gradient(each, parameter) for each in part.targets) and any(
            _is_gradient(each, parameter) or path_of(each) in made
            for each in parts_below(part.value)
        )
    call = part.value if isinstance(part, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    name = path_of(call.func).rpartition(".")[2]
    if isinstance(call.func, ast.Attribute) and _is_gradient(call.func.value, parameter):
        return name.endswith("_") and name not in _KEEPING
    handed = bool(call.args) and _is_gradient(call.args[0], parameter)
    return handed and any(word in name for word in _REDUCING)


def _is_gradient(node: ast.AST, parameter: str) -> bool:
    """Is it `p.grad`, or its `data`?"""
    return isinstance(node, ast.Attribute) and path_of(node) in (
        f"{parameter}.grad",
        f"{parameter}.grad.data",
    )
