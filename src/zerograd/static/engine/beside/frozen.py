"""ZG401: an optimizer over parameters that are all frozen, so that its steps find nothing.

    optimizer = Adam(model.fc.parameters())
    for parameter in model.fc.parameters():
        parameter.requires_grad = False

Told where they are frozen, if nothing in the file asks for gradients again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from zerograd.lifecycle.findings import Finding, TrailStep
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import targets
from zerograd.static.engine.text.words import is_optimizer_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit
    from zerograd.static.engine.reading.program import Program

_MESSAGE = "{owner}.step() finds no gradients: all parameters that {owner} holds are frozen here"
_ADVICE = "freeze the other parameters, and leave those that {owner} was made with as they are"
_FREEZES = re.compile(r"requires_grad(?:\s*=|_\()\s*False")
# Who says so may ask for gradients again, of these or of what stands in their place.
_ASKED_AGAIN = re.compile(r"requires_grad(?:\s*=|_\()(?!\s*False)")
_THAWED = ("set_requires_grad", "unfreeze", "thaw", "peft", "lora", "adapter", "setattr(")


# methods of a network that leave it as it is
_PLAIN = frozenset(
    (
        *("to", "cuda", "cpu", "train", "eval", "parameters", "named_parameters", "children"),
        *("state_dict", "load_state_dict", "zero_grad", "forward", "modules", "named_modules"),
    )
)


_LOOKS = frozenset(("print", "len", "isinstance", "torch.save", "summary", "copy.deepcopy"))


class Made(NamedTuple):
    """An optimizer that is made over one network, or part of one."""

    name: str
    network: str
    node: ast.Assign


def frozen(program: Program, told: Collection[Finding]) -> Iterator[Finding]:
    """Yield where this file freezes all that one of its optimizers holds.

    Args:
        told: what was found already; whose step is known to find nothing is told there.
    """
    spoken = {each.owner for each in told if each.rule.code == "ZG401" and each.certain}
    yield from (each for each in _frozen(program) if each.owner not in spoken)


def _frozen(program: Program) -> Iterator[Finding]:
    unit = program.main
    text = unit.source.text
    if ".step(" not in text or not _FREEZES.search(text) or _ASKED_AGAIN.search(text):
        return
    in_small_letters = text.lower()
    if any(word in in_small_letters for word in _THAWED):
        return
    for scope in (unit.source.tree, *unit.functions_saying("requires_grad")):
        made: list[Made] = []
        froze: dict[str, ast.stmt] = {}
        for each in scope.body:
            made += _made(each)
            if network := _froze(each):
                froze[network] = each
                last = [one for one in made if _is_in(one.network, network)]
                yield from (
                    _finding(program, one, each) for one in last if _is_used(unit, one, each)
                )
                continue
            for one in _made(each):
                for network, statement in froze.items():
                    if _is_in(one.network, network) and _is_used(unit, one, each):
                        yield _finding(program, one, statement)
            given = {*map(path_of, targets([each]))} - {""}
            changed = given | set(_handed(each))
            froze = {
                name: statement
                for name, statement in froze.items()
                if not any(_is_in(one, name) or _is_in(name, one) for one in changed)
            }
            made = [one for one in made if one.node is each or one.name not in given]


def _handed(statement: ast.stmt) -> Iterator[str]:
    """Yield what a statement hands to a call, which may put a part of its own into it."""
    inside = [] if isinstance(statement, FunctionNode | ast.ClassDef) else parts_below(statement)
    for each in inside:
        if isinstance(each, ast.Call) and path_of(each.func) not in _LOOKS:
            yield from map(path_of, each.args)


def _made(statement: ast.stmt) -> list[Made]:
    """Return the optimizer that a statement makes with `network.parameters()` and nothing else."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    name, call = path_of(statement.targets[0]), statement.value
    if not isinstance(call, ast.Call) or not call.args or not is_optimizer_name(name):
        return []
    network = _parameters_of(call.args[0])
    return [Made(name, network, statement)] if network else []


def _froze(statement: ast.stmt) -> str:
    """Return the network that a loop over its parameters, or one call, freezes whole."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr == "requires_grad_":
            return path_of(func.value)
    if not isinstance(statement, ast.For) or len(statement.body) != 1:
        return ""
    inner = statement.body[0]
    if not isinstance(inner, ast.Assign) or not isinstance(inner.targets[0], ast.Attribute):
        return ""
    target = inner.targets[0]
    of_each = target.attr == "requires_grad" and path_of(target.value) == path_of(statement.target)
    return _parameters_of(statement.iter) if of_each else ""


def _parameters_of(value: ast.expr) -> str:
    """Return the network of `network.parameters()`."""
    func = value.func if isinstance(value, ast.Call) and not value.args else None
    plain = isinstance(func, ast.Attribute) and func.attr == "parameters"
    return path_of(func.value) if plain and isinstance(func, ast.Attribute) else ""


def _is_in(part: str, whole: str) -> bool:
    return bool(whole) and (part == whole or part.startswith((f"{whole}.", f"{whole}[")))


def _is_used(unit: Unit, made: Made, last: ast.stmt) -> bool:
    """Is it used after both are done, and by nothing but a schedule before that?"""
    if not _is_left_alone(unit, made.network):
        return False
    if f"{made.name}.add_param_group(" in unit.source.text:
        return False  # it has others as well
    named = re.compile(rf"\b{re.escape(made.name)}\b")
    rows = [row for row, line in enumerate(unit.source.lines, 1) if named.search(line)]
    first, end = made.node.end_lineno or 0, last.end_lineno or 0
    between = [row for row in rows if first < row < last.lineno]
    early = [row for row in between if "sched" not in unit.source.lines[row - 1].lower()]
    return not early and any(row > max(first, end) for row in rows)


def _is_left_alone(unit: Unit, network: str) -> bool:
    """Does the file call nothing of the network that may ask for gradients again?"""
    first, *rest = network.split(".")
    whole = re.escape(".".join((first, *rest[:1])) if first == "self" else first)
    called = re.findall(rf"\b{whole}(?:\.\w+)*\.(\w+)\(", unit.source.text)
    return all(name in _PLAIN or name == "requires_grad_" or name[0].isupper() for name in called)


def _finding(program: Program, made: Made, froze: ast.stmt) -> Finding:
    source = program.main.source
    at = froze.body[0] if isinstance(froze, ast.For) else froze
    stations = ((made.node, "makes it with these parameters"), (at, "freezes them all"))
    return Finding(
        rule=BY_CODE["ZG401"],
        spot=source.spot(at),
        message=_MESSAGE.format(owner=made.name),
        advice=_ADVICE.format(owner=made.name),
        owner=made.name,
        trail=tuple(
            TrailStep(source.spot(node), text, source.segment(node)) for node, text in stations
        ),
    )
