"""Choices: chains of `elif` between names, and names for one optimizer or else for another."""

from __future__ import annotations

import ast
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.branches import ALWAYS, NEVER, Test, branch, combined
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.keys import joined, keys_of
from zerograd.static.engine.identity.values import (
    Bound,
    Constant,
    Either,
    Module,
    Named,
    Optimizer,
    Scaler,
    Tensor,
    Tested,
    Value,
)
from zerograd.static.engine.text.words import is_optimizer_name

if TYPE_CHECKING:
    from zerograd.static.engine.identity.frame import Frame
    from zerograd.static.engine.reading.program import Program

_MOST_PARTS = 4  # conditions that a flag may be put together from


def either(program: Program, test: Test, then: Value, otherwise: Value) -> Value:
    """Return one value for what a name holds where the test is true, and where not.

    Of two optimizers it stays known which is which: each is cleared, and stepped, on its own way.
    So it does of two losses that come from different networks, or of which one is scaled, of a
    flag, which says afterwards what the test said, and of what is called.
    """
    flag = _flag(test, then, otherwise)
    if flag is not None:
        return flag
    if test.kind not in ("always", "never") and (
        _are_called(program, then, otherwise) or _replaces(program, test, then, otherwise)
    ):
        return Either(test, then, otherwise)
    value = joined([then, otherwise])
    if type(value) is Scaler and _is_none(otherwise if value is then else then):
        value.there = settled(program, test if value is then else test.negated())
        return value
    if type(value) is Tensor and type(then) is Tensor and type(otherwise) is Tensor:
        if then.deps != otherwise.deps or then.scaler != otherwise.scaler:
            value.choice = test, then, otherwise
        return value
    if type(value) is not Optimizer and type(value) is not Named:
        return value
    one, other = _optimizer(program, then), _optimizer(program, otherwise)
    if one is None and other is None and type(value) is Named:
        _may_be(program, value, otherwise if value is then else then)
    if one is None or other is None or one.key == other.key:
        return value
    if (one.keys is None) is not (other.keys is None) and _spelled(one) == _spelled(other):
        return value  # of one name, and of one of them nothing is known: the same, made anew
    chosen = joined([one, other])
    assert isinstance(chosen, Optimizer)
    chosen.choice = test, one, other
    return chosen


def on_one_branch(program: Program, before: Value, value: Value) -> Value:
    """Return what an attribute holds that is assigned on one branch only."""
    if program.around and _are_called(program, before, value):
        return Either(program.around[-1], value, before)
    return joined([before, value])


def on_both_ways(frame: Frame, choice: Either, read: Callable[[Value], Value]) -> Value:
    """Read a call for both of what may be called, each on its own way."""
    outer, frame.out = frame.out, []
    then = read(choice.then)
    one, frame.out = frame.out, []
    otherwise = read(choice.otherwise)
    other, frame.out = frame.out, outer
    frame.out.extend(branch(choice.test, one, other))
    return either(frame.program, choice.test, then, otherwise)


def made_elsewhere(program: Program, instance: Instance, known: dict[str, Value]) -> None:
    """Settle the choices among attributes that another method set: it made them there, and then.

    `self.step = plain if not is_external(name) else outer`: the call is not made in each round.
    What was `known` before is left as it is.
    """
    for name, value in instance.attributes.items():
        if value is known.get(name):
            continue
        chosen_before(program, value)
        if type(value) is Either:
            instance.attributes[name] = _made_once(program, value)


def chosen_before(program: Program, value: Value) -> None:
    """An optimizer that was chosen before a loop is the same one in all of its rounds."""
    if type(value) is Optimizer and value.choice is not None:
        test, one, other = value.choice
        value.choice = _answered(program, test), one, other
        chosen_before(program, one)
        chosen_before(program, other)


def _made_once(program: Program, choice: Either) -> Either:
    then, otherwise = (
        _made_once(program, each) if type(each) is Either else each
        for each in (choice.then, choice.otherwise)
    )
    return Either(_answered(program, choice.test), then, otherwise)


def _answered(program: Program, test: Test) -> Test:
    """Return a test whose answer was taken down, of one that may be another each time."""
    if test.kind in ("both", "either"):
        return Test(test.kind, parts=tuple(_answered(program, each) for each in test.parts))
    atom = program.atoms.get(test.key)
    if atom is None or not atom.volatile:
        return test
    key = f"{test.key}, once"
    if key not in program.atoms:
        kept = copy(atom)
        kept.volatile, kept.lasts = False, True
        program.note_atom(key, kept)
    return Test("atom", key, test.truth)


def _are_called(program: Program, one: Value, other: Value) -> bool:
    """Are these two functions, or objects of the project, of which one acts on gradients?"""
    if not (_is_called(program, one) and _is_called(program, other)) or one.ident == other.ident:
        return False
    return _acts(one) or _acts(other)


def _replaces(program: Program, test: Test, one: Value, other: Value) -> bool:
    """Does what acts on gradients stand for a function that is handed in, by a test of others?

    `if static: step = Captured(step)`: elsewhere the stranger is called, who does other things.
    """
    for known, stranger in ((one, other), (other, one)):
        if type(stranger) is Named and _is_called(program, known) and _acts(known):
            return not any(_asks_for(program, key, stranger.path) for key in test.atoms())
    return False


def _asks_for(program: Program, key: str, path: str) -> bool:
    atom = program.atoms.get(key)
    return atom is None or path.split("@", 1)[0] in atom.text


def _is_called(program: Program, value: Value) -> bool:
    if isinstance(value, Instance):
        return not program.is_module(value.cls) and not program.is_optimizer(value.cls)
    return isinstance(value, (Function, Bound, Either))


def _acts(value: Value) -> bool:
    if isinstance(value, Function):
        return value.unit.has_events(value.node)
    if isinstance(value, Instance):
        return value.cls.unit.has_events(value.cls.node)
    return isinstance(value, Bound | Either)


def _is_none(value: Value) -> bool:
    return type(value) is Constant and value.value is None


def settled(program: Program, test: Test) -> Test | None:
    """Return a test about a scaler, if it says the same for as long as that is kept."""
    atoms = [program.atoms.get(key) for key in test.atoms()]
    lasts = all(each is not None and not each.volatile for each in atoms)
    return test if lasts and test.kind not in ("always", "never") else None


def _flag(test: Test, then: Value, otherwise: Value) -> Value | None:
    """Return the truth of `done = False`, then `if test: done = True`: that of the test."""
    one, other = _truth(then), _truth(otherwise)
    if one is None or other is None or then.ident == otherwise.ident:
        return None
    sides = [combined("both", [test, one]), combined("both", [test.negated(), other])]
    made = combined("either", sides)
    if made is ALWAYS or made is NEVER or len(made.atoms()) > _MOST_PARTS:
        return None
    return Tested(made)


def _truth(value: Value) -> Test | None:
    if type(value) is Tested:
        return value.test
    if type(value) is Constant and type(value.value) is bool:
        return ALWAYS if value.value else NEVER
    return None


def _spelled(optimizer: Optimizer) -> str:
    return optimizer.key.split("@", 1)[0]


def _may_be(program: Program, value: Named, other: Value) -> None:
    """Remember that a network known by its name only, one that was loaded say, may be another."""
    if isinstance(other, (Named, Module, Instance)) and other.ident != value.ident:
        keys = keys_of(other)
        if any(map(program.is_network, (value.path, *keys))):
            program.derive(value.path, keys)


def _optimizer(program: Program, value: Value) -> Optimizer | None:
    if type(value) is Named and is_optimizer_name(value.path):
        return program.named_optimizer(value.path)
    return value if type(value) is Optimizer else None


def last_choice(node: ast.If) -> list[ast.stmt]:
    """Return the else branch; the last `elif` of a choice between names is the remaining one.

    `if mode == "sgd": … elif mode == "adam": …` is not written for a third mode.
    """
    if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
        return node.orelse
    inner = node.orelse[0]
    subject = _subject(node.test)
    if inner.orelse or not subject or _subject(inner.test) != subject:
        return node.orelse
    return inner.body


def _subject(test: ast.expr) -> str:
    """Return what is compared with a name: a string, a class, a member of an enumeration."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ""
    right = test.comparators[0]
    options = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else [right]
    if not isinstance(test.ops[0], ast.Eq | ast.Is | ast.In) or not all(map(_is_name, options)):
        return ""
    return ast.dump(test.left)


def _is_name(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    last = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return last[:1].isupper()
