"""Gradients given and taken away by assignment: `p.grad = None`, `p.grad = g`, `del p.grad`."""

from __future__ import annotations

import ast

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.ir import Haze, Reset
from zerograd.static.engine.identity.keys import keys_of
from zerograd.static.engine.identity.values import NOTHING, Gradient, Tensor, Value
from zerograd.static.engine.reading.emit import emit, is_lacking, is_part
from zerograd.static.engine.reading.expressions import evaluate
from zerograd.static.engine.reading.gradients import is_made_of_itself, wipe_unknown
from zerograd.static.engine.reading.lending import lender

_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))


def assign_gradient(frame: Frame, target: ast.expr, value: Value, right: ast.expr) -> None:
    """`p.grad = …`: None and zeros clear, all else is a gradient given by hand."""
    holder = target.value if isinstance(target, ast.Attribute) else target
    owner = peek(frame, holder)
    if isinstance(owner, Gradient):
        owner = owner.of
    to_none = isinstance(right, ast.Constant) and right.value is None
    if isinstance(owner, Tensor) and owner.copied and to_none:
        return  # of a copy of parameters, which has none
    if isinstance(owner, Tensor) or owner is NOTHING:
        frame.emit(Haze(None, whole=False))  # somebody's gradient, given by hand
        return
    zeros = isinstance(right, ast.Call) and path_of(right.func).rsplit(".", 1)[-1] in _ZEROS
    zero = isinstance(right, ast.Constant) and right.value == 0 and not to_none
    if to_none or zeros or zero:
        wipe_unknown(frame, owner)
        emit(
            frame,
            EventKind.CLEAR,
            target,
            keys=keys_of(owner),
            some=is_part(owner),
            lacks=is_lacking(owner),
            name=path_of(holder),
            to_none=to_none,
        )
        if not to_none:
            frame.emit(Reset(keys_of(owner), present=True))  # there now, and zero
    elif is_made_of_itself(frame, owner, right):
        # Averaged over ranks, say: what was in it is in it still. Who has nothing in it, or
        # what a step has used, does something else, and is not for us to judge.
        frame.emit(Haze(keys_of(owner), whole=True, spent=True, empty=True))
    else:
        emit(
            frame,
            EventKind.ASSIGN,
            target,
            keys=keys_of(owner),
            name=path_of(holder),
            lender=lender(owner, value),
        )


def delete(frame: Frame, node: ast.Delete) -> None:
    """`del p.grad` is a clear."""
    for target in node.targets:
        if isinstance(target, ast.Attribute) and target.attr == "grad":
            owner = peek(frame, target.value)
            emit(frame, EventKind.CLEAR, target, keys=keys_of(owner), name=path_of(target.value))


def there_now(frame: Frame, holder: ast.expr) -> None:
    """Whoever had no gradient before has been given one, whatever the others had in theirs."""
    owner = peek(frame, holder)
    frame.emit(Reset(keys_of(owner.of if isinstance(owner, Gradient) else owner), present=True))


def gradients_given(body: list[ast.stmt]) -> list[ast.expr]:
    """`if p.grad is None: p.grad = torch.zeros_like(p)`: whose gradient is there afterwards."""
    return [
        target.value
        for each in body
        if isinstance(each, ast.Assign)
        and not (isinstance(each.value, ast.Constant) and each.value.value is None)
        for target in each.targets
        if isinstance(target, ast.Attribute) and target.attr == "grad"
    ]


def peek(frame: Frame, node: ast.expr) -> Value:
    """Evaluate without counting the reading of a gradient as its use."""
    program = frame.program
    before, program.peeking = program.peeking, True
    value = evaluate(frame, node)
    program.peeking = before
    return value
