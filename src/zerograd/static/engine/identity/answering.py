"""A parameter that is asked for what one class of the file alone can do: it is one of those."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.frame import path_of

if TYPE_CHECKING:
    from zerograd.static.engine.identity.definitions import Function
    from zerograd.static.engine.text.classes import ClassUnit

# what optimizers and networks of torch answer to as well
_OF_TORCH = frozenset(
    (
        *("step", "zero_grad", "backward", "forward", "parameters", "named_parameters", "train"),
        *("eval", "to", "cuda", "cpu", "state_dict", "load_state_dict", "requires_grad_"),
    )
)
_TRAINING = ("zero_grad", ".step(", ".backward(")
_PLAIN = ("object", "ABC", "abc.ABC")


def class_of_parameter(function: Function, name: str) -> ClassUnit | None:
    """Return the class whose own methods are all that is called on a parameter.

    Two are asked of it at least, one of them of no other class, nor of torch's. A class that has
    others above it may be one of several.
    """
    unit = function.unit
    if not any(map(_may_be_asked, unit.classes.values())) or not unit.mentions(function.node, name):
        return None
    called = _called(unit.methods_called(function.node), {name})
    owner = function.bound
    if isinstance(owner, Instance):  # what its object keeps of it, and asks for elsewhere
        kept = {f"self.{attribute}" for attribute in _kept(function, name)}
        called |= _called(unit.methods_called(owner.cls.node), kept) if kept else set()
    if len(called) < 2 or called <= _OF_TORCH:
        return None
    found = [each for each in unit.classes.values() if called <= each.methods.keys()]
    if len(found) != 1 or not _may_be_asked(found[0]):
        return None
    (cls,) = found
    others = (each for each in unit.classes.values() if each is not cls)
    if any(cls.name in each.bases for each in others):
        return None
    acts = any(
        unit.mentions(cls.methods[each], word) for each in sorted(called) for word in _TRAINING
    )
    return cls if acts else None


def _may_be_asked(cls: ClassUnit) -> bool:
    """Is it a class of its own that trains? Most are networks and data, and have one above."""
    if len(cls.methods) < 2 or any(base not in _PLAIN for base in cls.bases):
        return False
    return any(cls.unit.mentions(cls.node, word) for word in _TRAINING)


def _called(methods: list[ast.Attribute], names: set[str]) -> set[str]:
    """Return those of the methods that are called on what has these names."""
    return {each.attr for each in methods if path_of(each.value) in names}


def _kept(function: Function, name: str) -> Iterator[str]:
    """Yield the attributes that are given a parameter: `self.learner = learner`."""
    body = function.node.body
    for each in body if isinstance(body, list) else ():
        if not isinstance(each, ast.Assign):
            continue
        target, value = each.targets[0], each.value
        pairs = (
            zip(target.elts, value.elts, strict=False)
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            else ((target, value),)
        )
        for to, given in pairs:
            own = isinstance(to, ast.Attribute) and path_of(to.value) == "self"
            if own and isinstance(given, ast.Name) and given.id == name:
                yield path_of(to).removeprefix("self.")
