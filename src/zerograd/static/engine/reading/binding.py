"""Binding: what a name, an attribute, an item or several at once stand for from then on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.choices import on_one_branch
from zerograd.static.engine.identity.definitions import Class, Instance
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import (
    Haze,
    Reset,
)
from zerograd.static.engine.identity.items import appended, put_item
from zerograd.static.engine.identity.typical import at_place
from zerograd.static.engine.identity.values import (
    NOTHING,
    Constant,
    Gradient,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Several,
    Tensor,
    Value,
    apart,
)
from zerograd.static.engine.reading.expressions import evaluate, place_of
from zerograd.static.engine.reading.given import assign_gradient, peek
from zerograd.static.engine.reading.gradients import write_into
from zerograd.static.engine.reading.implied import implied
from zerograd.static.engine.text.words import (
    is_optimizer_name,
    is_scaler_name,
    is_scheduler_name,
)

if TYPE_CHECKING:
    from zerograd.static.engine.reading.program import Program


def bind(frame: Frame, target: ast.expr, value: Value) -> None:
    """Give `target` the value."""
    program = frame.program
    if type(target) is ast.Name:
        before = frame.locals.get(target.id)
        if isinstance(before, Leaf) and before.key.partition("@")[0] == target.id:
            _leave_behind(frame, before, value)  # under another name it lives on by its own
        if not (is_optimizer_name(target.id) and _is_mistaken(frame.lookup(target.id), value)):
            frame.assign(target.id, program.christened(frame, value, target.id))
    elif type(target) is ast.Attribute:
        if target.attr in ("grad", "_grad"):  # one of several targets
            assign_gradient(frame, target, value, target)
            return
        owner = peek(frame, target.value)
        path = path_of(target)
        named = program.christened(frame, value, path or target.attr)
        if isinstance(owner, Instance):
            implied(frame, target, owner, f"{target.attr}.setter", value)
            before = owner.attributes.get(target.attr)
            _leave_behind(frame, before, value)
            if before is not None and (program.conditional or _is_mistaken(before, value)):
                named = on_one_branch(program, before, named)
            owner.attributes[target.attr] = named
            _join(program, owner.key, named)
        elif type(owner) is Mapping:  # a namespace
            owner.items[target.attr] = apart(named, owner)
        elif isinstance(owner, Module | Named | Class):
            key = owner.path if isinstance(owner, Named) else getattr(owner, "key", owner.ident)
            program.attach(key, target.attr, named)
            _join(program, key, named)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Starred):
        bind(frame, target.value, value)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(frame, target.value)
        index = evaluate(frame, target.slice)
        if isinstance(owner, Gradient):
            write_into(frame, target, owner, value)
        elif isinstance(owner, Mapping):
            place = place_of(frame, target.slice)
            place = ("?", len(owner.items)) if place is None else place
            value = appended(frame, value)
            _leave_behind(frame, owner.items.get(place), value)
            known = isinstance(index, Constant)  # also where a function is handed the key
            path = f"{path_of(target.value)}[{place!r}]" if known else path_of(target)
            owner.items[place] = program.christened(frame, apart(value, owner), path)
        elif isinstance(owner, Named) and isinstance(value, Optimizer):
            program.christened(frame, value, path_of(target))
        elif isinstance(owner, Named) and isinstance(value, Leaf) and isinstance(index, Constant):
            path = f"{owner.path}[{index.value!r}]"  # of a dict that somebody else has filled
            program.attach(owner.path, path, program.christened(frame, value, path))
        elif isinstance(owner, Several) and isinstance(value, Module | Optimizer | Instance):
            put_item(owner, index, program.christened(frame, value, path_of(target)))
            program.keep(value)
        elif isinstance(owner, Several) and isinstance(value, Tensor) and value.deps:
            put_item(owner, index, value)
        elif isinstance(target.value, ast.Name) and isinstance(value, Tensor) and value.deps:
            _write_into(frame, target.value.id, owner, index, value)


def _join(program: Program, key: str, part: Value) -> None:
    """A network that is given to another one is part of it; a trainer is not."""
    if isinstance(part, Module) or (isinstance(part, Instance) and program.is_module(part.cls)):
        program.join(key, part.key)


def _is_mistaken(before: Value, value: Value) -> bool:
    """Is what was an optimizer given a network or a scheduler, by arguments in a wrong order?

    Such a line raises where it runs. What the rest of the code means is the optimizer.
    """
    if not isinstance(before, Optimizer):
        return False
    return isinstance(value, Module) or (isinstance(value, Named) and is_scheduler_name(value.path))


def _leave_behind(frame: Frame, before: Value | None, value: Value) -> None:
    """`x = clamp(x0 + step).detach()`: the name goes on with another tensor, without a gradient.

    In the next round it is that one which is told to require one. What is computed from the
    leaf by somebody unseen may be the leaf itself.
    """
    if isinstance(before, Leaf) and isinstance(value, Tensor):
        key = frozenset((before.key,))
        frame.emit(Haze(key, whole=True) if before.key in value.leaves else Reset(key))


def _write_into(frame: Frame, name: str, owner: Value, index: Value, value: Tensor) -> None:
    """`out[:, i] = net(x)`: what is computed from `out` goes back through the network too."""
    if isinstance(index, Constant) and isinstance(index.value, str):
        return  # an item of some dict
    before = Tensor(sure=False) if owner is NOTHING or isinstance(owner, Named) else owner
    if isinstance(before, Tensor):
        frame.assign(name, Arguments([before, value], {}).computed())


def _says_more(target: ast.expr, path: str) -> bool:
    """Does the target's name tell an optimizer or a scaler, where the source's tells nothing?"""
    name = path_of(target)
    return (is_optimizer_name(name) and not is_optimizer_name(path)) or (
        is_scaler_name(name) and not is_scaler_name(path)
    )


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Value) -> None:
    items: list[Value] = []
    if isinstance(value, Several) and not value.open and len(value.items) == len(target.elts):
        items = value.items
    starred = [n for n, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
    if starred and isinstance(value, Several) and not value.open:
        at, rest = starred[0], len(target.elts) - starred[0] - 1
        end = len(value.items) - rest
        items = [*value.items[:at], Several(value.items[at:end]), *value.items[end:]]
        items = items if end >= at else []
    for number, each in enumerate(target.elts):
        if items:
            bind(frame, each, items[number])
        elif isinstance(value, Several) and value.items and value.open:
            bind(frame, each, at_place(frame.program, value.items[0], number))
        elif isinstance(value, Tensor):
            bind(frame, each, value)
        elif isinstance(value, Params):  # a name and a parameter, of named_parameters()
            bind(frame, each, value if each is target.elts[-1] else NOTHING)
        elif isinstance(value, Named) and not _says_more(each, value.path):
            bind(frame, each, Named(f"{value.path}[{number}]"))
        elif type(value) is Optimizer:  # of several, which somebody unseen has made
            bind(frame, each, Named(f"{value.key}[{number}]"))
        else:
            bind(frame, each, NOTHING)
