"""ZG401: a function that clears, computes a loss and steps, and goes back nowhere.

Whoever calls it cannot go back between its clear and its step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.acting import COMMENTS, acts
from zerograd.static.engine.identity.endings import is_empty
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.values import External
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import is_loss_name, is_optimizer_name, words_of

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_FILLS = re.compile(r"backward|backprop|autograd|\.grad\b|closure")
# what is done with a loss that leaves its gradients alone
_LOOKS = frozenset(
    (
        *("print", "float", "str", "format", "append", "extend", "update", "add", "log", "info"),
        *("log_dict", "add_scalar", "log_metric", "isnan", "isfinite", "isinf", "mean", "sum"),
        *("stack", "cat", "item", "detach", "len", "debug", "record", "set_postfix"),
    )
)


def stepped_unfilled(program: Program) -> Iterator[Finding]:
    """Yield the steps of this file right behind a clear, where a loss was meant to fill."""
    unit = program.main
    if ".step(" not in unit.source.text:
        return
    for function in unit.functions_saying("zero_grad"):
        pairs = list(_pairs(function))
        if not pairs:
            continue  # most functions
        code = "\n".join(map(ast.unparse, function.body))  # a comment may speak of a backward
        if _FILLS.search(code) or acts(code, unit):
            continue
        for owner, clear, step in pairs:
            if _keeps_a_loss(program, function, step.lineno):
                yield _finding(program, owner, clear, step)


def stepped_by_closure(program: Program) -> Iterator[Finding]:
    """Yield the steps of this file with a closure that clears, gives back a loss and fills nothing.

    An optimizer of torch's takes what the closure gives back for a loss that has gone backward.
    Others, torchmin's `Minimizer` say, go back themselves.
    """
    unit = program.main
    for closure in unit.functions_saying("zero_grad"):
        name = re.escape(closure.name)
        if not re.search(rf"\.step\(\s*(?:closure\s*=\s*)?{name}\s*\)", unit.source.text):
            continue  # most functions
        code = "\n".join(map(ast.unparse, closure.body))
        if _FILLS.search(code) or acts(code, unit) or not _gives_back_a_loss(program, closure):
            continue
        for step in _steps_with(unit.source.tree, closure.name):
            assert isinstance(step.func, ast.Attribute)
            owner = path_of(step.func.value)
            if not _is_of_torch(program, owner):
                continue
            cleared = [
                each
                for each in ast.walk(closure)
                if isinstance(each, ast.Call) and path_of(each.func) == f"{owner}.zero_grad"
            ]
            if cleared:
                yield _finding(program, owner, cleared[0], step)


def _is_of_torch(program: Program, owner: str) -> bool:
    """Is all that this file gives to a name made by a class of torch.optim?"""
    frame = program.frame(program.main)
    made = [
        program.evaluate(frame, each.value.func) if isinstance(each.value, ast.Call) else None
        for each in program.main.statements()
        if isinstance(each, ast.Assign) and owner in map(path_of, each.targets)
    ]
    return bool(made) and all(
        isinstance(each, External) and each.dotted.startswith("torch.optim.") for each in made
    )


def _steps_with(tree: ast.AST, closure: str) -> list[ast.Call]:
    """Return the steps that are handed the closure, if no other function has its name."""
    named = [
        each for each in ast.walk(tree) if isinstance(each, FunctionNode) and each.name == closure
    ]
    return [
        each
        for each in ast.walk(tree)
        if len(named) == 1
        and isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "step"
        and [path_of(given) for given in (*each.args, *(word.value for word in each.keywords))]
        == [closure]
    ]


def _gives_back_a_loss(program: Program, closure: FunctionNode) -> bool:
    """Does it end with a loss that it has computed itself?"""
    last = closure.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return False
    if not isinstance(last.value, ast.Name):
        return _is_loss(program, last.value)
    given = any(
        isinstance(each, ast.Assign)
        and any(path_of(target) == last.value.id for target in each.targets)
        and _is_loss(program, each.value)
        for each in closure.body
    )
    return given and _keeps_a_loss(program, closure, last.lineno)


def _pairs(function: FunctionNode) -> Iterator[tuple[str, ast.Call, ast.Call]]:
    """Yield the clears of a function with the steps behind them, both in no loop of its own."""
    cleared: dict[str, ast.Call] = {}
    for each in function.body:
        call = each.value if isinstance(each, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        method, owner = call.func.attr, path_of(call.func.value)
        if method in ("backward", "manual_backward"):
            return
        if method == "zero_grad" and is_optimizer_name(owner):
            cleared[owner] = call
        elif method == "step" and owner in cleared and not (call.args or call.keywords):
            yield owner, cleared[owner], call


def _keeps_a_loss(program: Program, function: FunctionNode, line: int) -> bool:
    """Is a loss computed before a line that nothing takes which could go back from it?"""
    losses = {
        target.id
        for each in statements_in(function.body)
        if isinstance(each, ast.Assign) and each.lineno < line and _is_loss(program, each.value)
        for given in each.targets
        for target in (given.elts if isinstance(given, ast.Tuple) else [given])
        if isinstance(target, ast.Name) and "loss" in target.id.lower()
    }
    if not losses:
        return False
    for call in parts_below(function):
        if not isinstance(call, ast.Call):
            continue
        name = path_of(call.func).rsplit(".", 1)[-1]
        handed = [*call.args, *(word.value for word in call.keywords)]
        taken = any(
            isinstance(each, ast.Name) and each.id in losses
            for argument in handed
            for each in parts_below(argument)
        )
        if taken and name not in _LOOKS and "log" not in words_of(name):
            return False
    return True


def _is_loss(program: Program, value: ast.expr) -> bool:
    """Is it what a function of torch, or one called a loss, gives, or a sum with such a term?"""
    if isinstance(value, ast.BinOp):
        known = _is_loss(program, value.left) or _is_loss(program, value.right)
        return known and not _goes_back(program, value)
    if not isinstance(value, ast.Call):
        return False
    name = path_of(value.func)
    last = name.rsplit(".", 1)[-1]
    if name.startswith(("F.", "torch.nn.functional.", "nn.functional.")):
        return "loss" in last or "entropy" in last
    return is_loss_name(last) and _only_computes(program, name, frozenset())


def _only_computes(program: Program, path: str, asked: frozenset[str]) -> bool:
    """Is it torch's, or so written in this file that nothing in it goes back?"""
    unit, name = program.main, path.rsplit(".", 1)[-1]
    written = [each for each in unit.functions_saying(f"def {name}(") if each.name == name]
    if not written or name in asked:
        return name in asked or f"def {name}(" not in unit.source.text
    for each in written:
        code = COMMENTS.sub("", unit.text_of(each))
        called = {path_of(call.func) for call in parts_below(each) if isinstance(call, ast.Call)}
        if is_empty(each) or _FILLS.search(code) or acts(code, unit):
            return False
        if not all(_only_computes(program, one, asked | {name}) for one in called):
            return False
    return True


def _goes_back(program: Program, value: ast.expr) -> bool:
    """Does a function of this file that gives a term of it fill gradients on its own?"""
    unit = program.main
    return any(
        _FILLS.search(unit.text_of(each))
        for call in parts_below(value)
        if isinstance(call, ast.Call)
        for each in unit.functions_saying(f"def {path_of(call.func).rsplit('.', 1)[-1]}(")
    )


def _finding(program: Program, owner: str, clear: ast.Call, step: ast.Call) -> Finding:
    rule = BY_CODE["ZG401"]
    names = {"owner": owner}
    source = program.main.source
    return Finding(
        rule=rule,
        spot=source.spot(step),
        message=rule.summary.format_map(names),
        advice=rule.advice.format_map(names),
        owner=owner,
        trail=(
            TrailStep(source.spot(clear), "clears", source.segment(clear)),
            TrailStep(
                source.spot(step), "steps, and no backward() came between", source.segment(step)
            ),
        ),
    )
