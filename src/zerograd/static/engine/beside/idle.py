"""ZG203: optimizers that are built beside others, which are stepped, and then are not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.taken import takes
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.judging.handovers import is_used
from zerograd.static.engine.text.classes import ClassUnit, FunctionNode
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import (
    is_optimizer_class,
    is_optimizer_name,
    is_scheduler_name,
)

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program

_BY_HAND = re.compile(r"-=|\.(?:sub|add|copy|addcdiv)_\(|\.data\s*=")
_STEPPED = re.compile(r"\bself\.(\w+)\.step\(")
_OWN_CALL = re.compile(r"\bself\.(\w+)\(")
_NOT_TRAINED = (".eval(", ", False)", ".requires_grad_(False")
_BY_NAME = re.compile(r"\b(?:getattr|vars)\(|__dict__")


def idle(program: Program) -> Iterator[Finding]:
    """Yield the optimizers of this file's functions that nothing steps or clears.

    They may be saved, given a scheduler and prepared; whoever else gets them may step them.
    What is kept in an object may be stepped by others, or be left over from its model.
    """
    unit = program.main
    scopes = _scopes(unit)
    if not scopes:
        return  # most files
    makers = {
        path_of(each.targets[0])
        for each in unit.statements()
        if isinstance(each, ast.Assign) and is_optimizer_class(path_of(each.value))
    }
    # DeepSpeed's engine, which Accelerate makes of what it prepares, steps as it goes backward.
    steps_by_itself = "deepspeed" in unit.source.text.lower()
    for scope in scopes:
        built = _built(scope, makers)
        if len(built) < 2:
            continue
        parts = unit.parts_of(scope)
        stepped = _stepped(parts)
        if stepped.isdisjoint(built):
            continue
        trained = {_weights(node) for name, node in built.items() if name in stepped}
        for name, node in built.items():
            if name in stepped or _weights(node) in trained:
                continue  # left over: another one trains the same weights
            if _goes_back(parts, node) and not _is_touched(parts, name, steps_by_itself):
                yield _finding(program, name, node)


def kept_idle(program: Program) -> Iterator[Finding]:
    """Yield the optimizers of a class that are cleared before a loss, and stepped nowhere.

    Others of the same class are stepped under their own names, and nobody else is given this one.
    """
    unit = program.main
    text = unit.source.text
    if ".zero_grad(" not in text or ".backward(" not in text or text.count(".step(") == 0:
        return
    for cls in unit.classes.values():
        for name in _kept(cls):
            if f"{name}.step" in text or f"self.{name}.zero_grad(" not in text:
                continue  # most of them
            others = any(is_optimizer_name(each) for each in _STEPPED.findall(text))
            others = others or _is_scheduled(text, name)
            clear = _cleared_before_a_loss(cls, name) if others else None
            if clear is None or _BY_NAME.search(unit.text_of(cls.node)):
                continue
            if any(is_used(each, {name}, {"prepare"}) for each in parts_below(unit.source.tree)):
                continue
            project = program.project
            if project is None or not project.around.is_named_by_clearers(unit.source, name):
                rule = BY_CODE["ZG203"]
                owner = f"self.{name}"
                yield Finding(
                    rule=rule,
                    spot=unit.source.spot(clear),
                    message=f"{owner} is cleared and filled, but never stepped",
                    advice=rule.advice.format_map({"owner": owner}),
                    owner=owner,
                )


def kept_unused(program: Program) -> Iterator[Finding]:
    """Yield the optimizers of a class that nobody clears or steps, while it steps others.

    Their networks are asked where the class goes backward: those losses were meant for them.
    """
    unit = program.main
    text = unit.source.text
    if ".backward(" not in text or ".step(" not in text:
        return
    for cls in unit.classes.values():
        made = _kept(cls)
        stepped = set(_STEPPED.findall(text)) if len(made) > 1 else set()
        if stepped.isdisjoint(made):
            continue  # most of them
        trained = {_weights(node) for name, node in made.items() if name in stepped}
        for name, node in made.items():
            if name in stepped or _weights(node) in trained or _is_named(text, name):
                continue
            if not _is_asked_for_a_loss(cls, node) or _BY_NAME.search(unit.text_of(cls.node)):
                continue
            if _is_given_away(unit, name, stepped):
                continue
            project = program.project
            if project is None or not project.around.is_named_by_clearers(unit.source, name):
                yield _finding(program, f"self.{name}", node)


def _is_given_away(unit: Unit, name: str, stepped: set[str]) -> bool:
    """Does somebody get it who may step it?

    Not by a list of which all others are stepped by their names: that one is for schedulers.
    """
    parts = list(parts_below(unit.source.tree))
    rows = [(path_of(each.func.value), each) for each in parts if _is_append(each)]  # type: ignore[attr-defined]
    shelves: dict[str, set[str]] = {}
    for shelf, call in rows:
        shelves.setdefault(shelf, set()).add(path_of(call.args[0]).removeprefix("self."))  # type: ignore[attr-defined]
    shelved = [
        each
        for shelf, each in rows
        if len(shelves[shelf]) > 2 and shelves[shelf] <= {name, *stepped}
    ]
    return any(is_used(each, {name}, {"prepare"}) for each in parts if each not in shelved)


def _is_append(node: ast.AST) -> bool:
    """`self.optimizers.append(self.optimizer_E)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and len(node.args) == 1
        and path_of(node.args[0]).startswith("self.")
    )


def _is_named(text: str, name: str) -> bool:
    """Is it cleared or stepped under whatever name the object has there?"""
    return f"{name}.step" in text or f"{name}.zero_grad" in text


def _is_asked_for_a_loss(cls: ClassUnit, node: ast.Assign) -> bool:
    """Is the network that it is built for called on the way to a backward of the class?"""
    network = _weights(node).removesuffix(".parameters()")
    texts = {name: cls.unit.text_of(each) for name, each in cls.methods.items()}
    if any(f"{network}{end}" in text for text in texts.values() for end in _NOT_TRAINED):
        return False
    calls = {name: set(_OWN_CALL.findall(text)) & texts.keys() for name, text in texts.items()}
    for first in texts:
        reached, more = {first}, {first}
        while more:
            more = set[str]().union(*(calls[each] for each in more)) - reached
            reached |= more
        passed = [texts[each] for each in reached]
        asked = any(f"{network}{call}" in text for text in passed for call in ("(", ".forward("))
        if asked and any(".backward(" in text for text in passed):
            return True
    return False


def _is_scheduled(text: str, name: str) -> bool:
    """Is a scheduler made from this one, and that is stepped?"""
    made = re.search(rf"\bself\.(\w+)\s*=\s*[\w.]+\(\s*(?:\w+=)?self\.{name}\b", text)
    return made is not None and is_scheduler_name(made[1]) and f"self.{made[1]}.step(" in text


def _kept(cls: ClassUnit) -> dict[str, ast.Assign]:
    """Return the attributes that the methods of a class make optimizers, and where."""
    return {
        name: each
        for name, assigners in cls.assigned().items()
        if is_optimizer_name(name)
        for assigner in assigners
        for each in statements_in(cls.methods[assigner].body)
        if isinstance(each, ast.Assign)
        and path_of(each.targets[0]) == f"self.{name}"
        and _makes_one(each.value, set())
    }


def _cleared_before_a_loss(cls: ClassUnit, name: str) -> ast.Call | None:
    """Return the clear of it that a plain backward follows in the same method."""
    for method in cls.methods.values():
        text = cls.unit.text_of(method)
        if f"self.{name}.zero_grad(" not in text or _BY_HAND.search(text) or takes(text):
            continue  # or another one steps on what is taken, as on a worker's gradients
        calls = [each for each in parts_below(method) if isinstance(each, ast.Call)]
        clears = [each for each in calls if path_of(each.func) == f"self.{name}.zero_grad"]
        losses = [each for each in calls if getattr(each.func, "attr", "") == "backward"]
        if clears and any(each.lineno > clears[-1].lineno for each in losses):
            return clears[-1]
    return None


def _scopes(unit: Unit) -> list[FunctionNode]:
    """Return the functions that train, and give several optimizers a name."""
    training = [each for each in unit.functions_saying(".backward") if unit.mentions(each, ".step")]
    if not training:
        return []
    given = [  # the optimizers' names, and where they are assigned
        (each.lineno, target.id)
        for each in unit.statements()
        if type(each) is ast.Assign
        for target in each.targets
        if type(target) is ast.Name and is_optimizer_name(target.id)
    ]
    if len(given) < 2:
        return []

    def gives_several(function: FunctionNode) -> bool:
        last = function.end_lineno or 0
        return len({name for row, name in given if function.lineno <= row <= last}) > 1

    return [each for each in training if gives_several(each)]


def _built(scope: FunctionNode, makers: set[str]) -> dict[str, ast.Assign]:
    """Return the optimizers that are made here and kept in a name."""
    found: dict[str, ast.Assign] = {}
    for each in statements_in(scope.body):
        if not isinstance(each, ast.Assign) or len(each.targets) != 1:
            continue
        name = path_of(each.targets[0])
        if name.isidentifier() and is_optimizer_name(name) and _makes_one(each.value, makers):
            found.setdefault(name, each)
    return found


def _makes_one(value: ast.AST, makers: set[str]) -> bool:
    """Is it `optim.Adam(…)`, a call of what stands for such a class, or of who makes one?"""
    given = _given(value) if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Call) or given is None:
        return False
    maker = path_of(value.func)
    if not maker or is_optimizer_class(maker) or maker in makers:
        return bool(maker)
    # get_optimizer(net.parameters(), …)
    return is_optimizer_name(maker) and path_of(getattr(given, "func", given)).endswith(
        ".parameters"
    )


def _weights(node: ast.Assign) -> str:
    """Return what an optimizer is built for, as it is written."""
    assert isinstance(node.value, ast.Call)
    given = _given(node.value)
    return ast.unparse(given) if given is not None else ""


def _given(call: ast.Call) -> ast.expr | None:
    """Return what an optimizer is made for."""
    named = (each.value for each in call.keywords if each.arg in ("params", "parameters"))
    return call.args[0] if call.args else next(named, None)


def _stepped(parts: list[ast.AST]) -> set[str]:
    """Return the names whose `step` is asked for."""
    return {
        each.value.id
        for each in parts
        if isinstance(each, ast.Attribute)
        and each.attr == "step"
        and isinstance(each.value, ast.Name)
    }


def _goes_back(parts: list[ast.AST], made: ast.Assign) -> bool:
    """Does a loss go back once the optimizer is there? Tests build others to load a state into."""
    around = [
        each.lineno
        for each in parts
        if isinstance(each, ast.For | ast.While)
        and each.lineno <= made.lineno <= (each.end_lineno or 0)
    ]
    first = min(around, default=made.lineno)
    return any(
        isinstance(each, ast.Attribute) and each.attr == "backward" and each.lineno > first
        for each in parts
    )


def _is_touched(parts: list[ast.AST], name: str, engines: bool) -> bool:
    """Is it cleared, or given to somebody who may step it, one who makes engines say?"""
    return any(
        is_used(each, {name}, {"prepare"})
        or (isinstance(each, ast.Attribute) and each.attr == "zero_grad" and _is(each.value, name))
        or (engines and isinstance(each, ast.Call) and any(_is(one, name) for one in each.args))
        for each in parts
    )


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _finding(program: Program, name: str, node: ast.Assign) -> Finding:
    rule = BY_CODE["ZG203"]
    return Finding(
        rule=rule,
        spot=program.main.source.spot(node),
        message=f"{name} is built but never stepped",
        advice=rule.advice.format_map({"owner": name}),
        owner=name,
    )
