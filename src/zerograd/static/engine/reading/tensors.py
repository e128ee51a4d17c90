"""Methods of tensors and parameters: what requires a gradient, and what is updated by hand."""

from __future__ import annotations

import ast
import re

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import (
    Leaf,
    Module,
    Named,
    Params,
    Several,
    Tensor,
    Value,
)
from zerograd.static.engine.reading.emit import emit, is_false
from zerograd.static.engine.reading.updates import perturbs, put_back, uses_gradient
from zerograd.static.engine.text.words import words_of

# what makes a leaf of a tensor, or gives it a gradient by hand
_GIVEN = re.compile(r"requires_grad|\bParameter\(|\.grad\s*=(?!=|\s*None\b)|setattr\(")
_STILL = frozenset(("clone", "contiguous", "cpu", "cuda", "double", "float", "half", "to"))
_PRODUCTS = frozenset(
    (
        *("mul", "mul_", "multiply", "div", "div_", "divide", "true_divide"),
        *("dot", "vdot", "inner", "einsum", "tensordot"),
    )
)


def require(frame: Frame, node: ast.Call, base: Value, arguments: Arguments) -> Value:
    """`x.requires_grad_()`: of a network, its parameters, or a tensor that becomes a leaf."""
    wanted = arguments.first()
    program = frame.program
    if isinstance(base, Module | Params | Instance) or (
        isinstance(base, Named)
        and (program.is_network(base.path) or frame.asks_parameters_of(base.path))
    ):
        program.freeze(base, is_false(wanted))
        return base
    if is_false(wanted):
        return Tensor()
    if isinstance(base, Leaf):
        return base
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(receiver, ast.Name):
        return program.required(frame, receiver.id)
    return program.new_leaf()


def require_each(frame: Frame, loop: ast.For | ast.AsyncFor) -> bool:
    """`for p in weights: p.requires_grad = True`: each of them becomes a leaf by its own name."""
    held = frame.lookup(loop.iter.id) if isinstance(loop.iter, ast.Name) else None
    if not isinstance(held, Several) or held.open or not _tells_to_require(loop):
        return False
    for place, item in enumerate(held.items):
        names = [name for name, value in frame.locals.items() if value is item]
        if type(item) is not Tensor or item.deps or len(names) != 1:
            return False
        held.items[place] = frame.program.required(frame, names[0])
    return True


def _tells_to_require(loop: ast.For | ast.AsyncFor) -> bool:
    """Is it all that is done with each item?"""
    if len(loop.body) != 1 or not isinstance(loop.target, ast.Name):
        return False
    told = loop.body[0]
    item = loop.target.id
    if isinstance(told, ast.Assign):
        right = isinstance(told.value, ast.Constant) and told.value.value is True
        return right and [path_of(each) for each in told.targets] == [f"{item}.requires_grad"]
    call = told.value if isinstance(told, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and path_of(call.func) == f"{item}.requires_grad_"
        and all(isinstance(each, ast.Constant) and each.value for each in call.args)
    )


def tensor_method(
    frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments
) -> Value:
    """A method of a tensor: one that uses a gradient to move a parameter is a step."""
    if isinstance(base, (Params, Leaf)) and name in ("sub_", "add_", "addcdiv_", "copy_", "mul_"):
        assert isinstance(node.func, ast.Attribute)
        holder = node.func.value
        if isinstance(holder, ast.Attribute) and holder.attr == "data":
            holder = holder.value
        if name == "copy_":
            put_back(frame, base, holder, node.args)
        used = any(uses_gradient(frame, each, holder, base) for each in node.args)
        if used and not perturbs(frame, node, base):
            emit(
                frame,
                EventKind.STEP,
                node,
                optimizer=frame.program.by_hand(keys_of(base)),
                name=path_of(node.func.value),
                leaf=isinstance(base, Leaf),
            )
        return base
    if isinstance(base, Params):
        return base.some(lacks=True) if name == "difference" else base
    if isinstance(base, Tensor) and base.copied and name in _STILL:
        return base
    return weighed(Arguments([base, *arguments.all()], {}).computed(), name)


def detached(frame: Frame, base: Value, name: str) -> Tensor:
    """Return what is cut off: of parameters a copy without a gradient, if nothing gives it one."""
    made = Tensor()
    kept = isinstance(base, Params) or (isinstance(base, Tensor) and base.copied)
    if kept and name == "detach":
        made.copied = not _GIVEN.search(frame.unit.source.text)
    return made


def weighed(value: Value, name: str) -> Value:
    """Return what a function gives, weighed if it multiplies: a loss, say, or an output by the
    gradient that some other loss has there.
    """
    if isinstance(value, Tensor) and name in _PRODUCTS:
        value.averaged = True
    return value


def is_packed(node: ast.expr) -> bool:
    """Is it, by its name, a sequence packed for a recurrent network, whose data is no copy?"""
    named = node.func if isinstance(node, ast.Call) else node
    return not frozenset(words_of(path_of(named))).isdisjoint(("pack", "packed"))
