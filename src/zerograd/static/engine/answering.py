"""A parameter that is asked for what one class of the file alone can do: it is one of those."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerograd.static.engine.classes import ClassUnit
    from zerograd.static.engine.definitions import Function

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
    if not unit.classes or not unit.mentions(function.node, f"{name}."):
        return None  # most parameters
    called = {
        each.func.attr
        for each in unit.parts_of(function.node)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and isinstance(each.func.value, ast.Name)
        and each.func.value.id == name
    }
    if len(called) < 2 or called <= _OF_TORCH:
        return None
    found = [each for each in unit.classes.values() if called <= each.methods.keys()]
    if len(found) != 1 or any(base not in _PLAIN for base in found[0].bases):
        return None
    (cls,) = found
    others = (each for each in unit.classes.values() if each is not cls)
    if any(cls.name in each.bases for each in others):
        return None
    acts = any(
        unit.mentions(cls.methods[each], word) for each in sorted(called) for word in _TRAINING
    )
    return cls if acts else None
