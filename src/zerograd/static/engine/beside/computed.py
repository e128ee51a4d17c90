"""ZG104: the `.grad` of a tensor that was computed, which has none.

Backward fills leaves only. `w = w - lr * w.grad` makes the name stand for what came out, and
the next round finds no gradient; `w = torch.randn(3, requires_grad=True) * 0.1` never had one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import statements_in, targets

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_REPLACED = re.compile(r"\b(\w+) *= *[^=\n#]*\b\1\.grad\b")
_MADE_ASIDE = re.compile(r"requires_grad *= *True[^\n#]*\) *(?:[*/+-]|\.cuda\()")
_ASSIGNED = re.compile(r"\.grad *= *(?!None)[^=]")
_SUMMARY = "{owner}.grad is None: {owner} was computed, and backward fills leaves only"
_ADVICE = (
    "update {owner} in place under torch.no_grad(), and make it a leaf: "
    "requires_grad_() on the finished tensor"
)
_KEEP_THE_GRAPH = frozenset(("clamp", "clip", "reshape", "squeeze", "to", "view"))
_OF_TORCH = frozenset(("add", "clamp", "clip", "mul", "sub", "subtract"))


def computed_used(program: Program, told: Iterable[Finding]) -> list[Finding]:
    """Return the uses of a computed tensor's gradient that are not told yet."""
    lines = {each.spot.line for each in told if each.rule.code == "ZG104"}
    return [each for each in _uses_in(program) if each.spot.line not in lines]


def _uses_in(program: Program) -> Iterator[Finding]:
    unit = program.main
    text = unit.source.text
    if ".grad" not in text:
        return  # most files: no pattern has to look
    if "retain_grad" in text or ".requires_grad" in text or _ASSIGNED.search(text):
        return  # who makes leaves by hand knows of them
    if any(_REPLACED.search(line) for line in text.split("\n") if ".grad" in line):
        for loop in unit.loops():
            if unit.mentions(loop, ".grad"):
                yield from _replaced_in(program, loop)
    if _MADE_ASIDE.search(text):
        for scope in (unit.source.tree, *unit.every_function()):
            yield from _made_aside_in(program, scope.body)


def _replaced_in(program: Program, loop: ast.For | ast.While) -> Iterator[Finding]:
    """`w = w - lr * w.grad`, round after round, and `w` is given nothing else in between."""
    if any(isinstance(each, ast.Break | ast.Return | ast.Raise) for each in loop.body):
        return  # no second round
    for at, statement in enumerate(loop.body):
        for assigned in _always(statement):
            name = _name_of(assigned)
            uses = _uses(assigned, name) if name else []
            if not uses or not _is_computed(assigned.value):
                continue
            if not _is_given_once(loop.body, name):
                continue
            before = "\n".join(program.main.text_of(each) for each in loop.body[:at])
            if "backward(" not in before or not _is_leaf_before(program, loop, name):
                continue
            later = [use for each in loop.body[at + 1 :] for use in _uses(each, name)]
            yield _finding(program, name, (later or uses)[0])


def _made_aside_in(program: Program, body: Sequence[ast.stmt]) -> Iterator[Finding]:
    """`w = torch.randn(3, requires_grad=True) * 0.1`: the leaf is what nobody kept."""
    for at, statement in enumerate(body):
        name = _name_of(statement)
        if not name or not _is_made_of_a_leaf(statement):
            continue
        if not _is_given_once([*body], name):
            continue
        after = body[at + 1 :]
        rest = "\n".join(program.main.text_of(each) for each in after)
        used = [use for each in after for use in _uses(each, name)]
        if used and "backward(" in rest:
            yield _finding(program, name, used[0])


def _always(statement: ast.stmt) -> list[ast.Assign]:
    """Return the assignments that are made whenever the statement is passed."""
    if isinstance(statement, ast.With):
        return [each for inner in statement.body for each in _always(inner)]
    return [statement] if isinstance(statement, ast.Assign) else []


def _name_of(statement: ast.stmt) -> str:
    """Return the one plain name that a statement assigns."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _is_given_once(body: list[ast.stmt], name: str) -> bool:
    """Is the name given one thing here? `w -= …` changes what it has in place."""
    in_place = {id(each.target) for each in statements_in(body) if isinstance(each, ast.AugAssign)}
    given = [each for each in targets(body) if path_of(each) == name and id(each) not in in_place]
    return len(given) == 1


def _uses(part: ast.AST, name: str) -> list[ast.Attribute]:
    """Return where `name.grad` is used as a tensor: None can be printed, but not reckoned with."""
    guarded = {
        id(inner)
        for each in parts_below(part)
        if isinstance(each, ast.If | ast.IfExp | ast.Try | ast.BoolOp)
        for inner in parts_below(each)
    }
    found = []
    for holder in parts_below(part):
        if not isinstance(holder, ast.BinOp | ast.Attribute | ast.Subscript):
            continue
        for each in ast.iter_child_nodes(holder):
            if not isinstance(each, ast.Attribute) or id(each) in guarded:
                continue
            if path_of(each) == f"{name}.grad":
                found.append(each)
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def _is_computed(value: ast.expr) -> bool:
    """Is it the outcome of a computation that the graph knows of?"""
    if isinstance(value, ast.BinOp):
        return True
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if path_of(value.func.value) == "torch":
        return value.func.attr in _OF_TORCH
    return value.func.attr in _KEEP_THE_GRAPH and _is_computed(value.func.value)


def _is_made_of_a_leaf(statement: ast.stmt) -> bool:
    """Is a leaf made, and something else kept: a product, or its copy on the device?"""
    assert isinstance(statement, ast.Assign)
    value = statement.value
    if isinstance(value, ast.BinOp):
        return any(map(_is_a_leaf, (value.left, value.right)))
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    return value.func.attr == "cuda" and _is_a_leaf(value.func.value)


def _is_a_leaf(value: ast.expr) -> bool:
    """Is it called with `requires_grad=True`?"""
    return isinstance(value, ast.Call) and any(
        word.arg == "requires_grad"
        and isinstance(word.value, ast.Constant)
        and word.value.value is True
        for word in value.keywords
    )


def _is_leaf_before(program: Program, loop: ast.For | ast.While, name: str) -> bool:
    """Is the name a leaf wherever it is given, but for this loop?"""
    inside = {id(each) for each in parts_below(loop)}
    given = [
        each
        for each in program.main.statements()
        if isinstance(each, ast.Assign) and _name_of(each) == name and id(each) not in inside
    ]
    return bool(given) and all(_is_a_leaf(each.value) for each in given)


def _finding(program: Program, name: str, use: ast.Attribute) -> Finding:
    names = {"owner": name}
    return Finding(
        rule=BY_CODE["ZG104"],
        spot=program.main.source.spot(use),
        message=_SUMMARY.format_map(names),
        advice=_ADVICE.format_map(names),
        owner=name,
    )
