"""What a step is handed: a loss or a closure that it goes back with, gradients, or neither."""

from __future__ import annotations

import ast

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.branches import Test
from zerograd.static.engine.identity.frame import Frame, path_of
from zerograd.static.engine.identity.values import (
    NOTHING,
    Named,
    Optimizer,
    Scaler,
    Tensor,
    leaves_of,
)
from zerograd.static.engine.text.words import is_scaler_name, words_of

_GRADIENTS = frozenset(("grads", "gradients"))
_LOSSES = frozenset(("loss", "losses", "closure", "fn", "func", "objective"))
_MOST_ARGUMENTS = 2


def goes_back_itself(
    frame: Frame, node: ast.Call, optimizer: Optimizer, arguments: Arguments
) -> bool:
    """Does a step go back with what it is handed, for all that can be seen?"""
    if not is_handed_a_loss(arguments) or _is_handed_a_number(optimizer, arguments):
        return False
    return _is_loss(arguments) or not _is_used_as_torchs(frame, node)


def is_handed_a_loss(arguments: Arguments) -> bool:
    """Is the first argument a loss, or several, or by its name one or a closure that makes one?

    What is handed more than that is handed what the loss is computed from: DARTS' architects.
    """
    return len(arguments.positional) > _MOST_ARGUMENTS or _is_loss(arguments)


def _is_loss(arguments: Arguments) -> bool:
    if "loss" in arguments.named:
        return True
    first = arguments.first() if arguments.positional else arguments.named.get("closure", NOTHING)
    if isinstance(first, Named):
        return not _LOSSES.isdisjoint(words_of(first.path))
    return any(isinstance(each, Tensor) for each in leaves_of(first))


def _is_used_as_torchs(frame: Frame, node: ast.Call) -> bool:
    """Does the function around it clear it, and go back, by itself?

    `opt.zero_grad(); loss.backward(); opt.step(model.penalties, index, size)`
    """
    text = frame.unit.text_of(frame.node) if frame.node is not None else ""
    receiver = path_of(node.func).rpartition(".")[0]
    return bool(receiver) and f"{receiver}.zero_grad(" in text and ".backward(" in text


def _is_handed_a_number(optimizer: Optimizer, arguments: Arguments) -> bool:
    """Is it `opt.step(total)` of one of torch's own, where `opt`'s scheduler was meant?

    Theirs take a closure and nothing else. A sum of `loss.item()` is none, and goes nowhere back.
    """
    first = arguments.first()
    return optimizer.of_torch and type(first) is Tensor and not (first.deps or first.leaves)


def is_handed_gradients(node: ast.Call) -> bool:
    """`optimizer.step(model.named_gradients())`: is it told what to step on?"""
    given = [*node.args, *(each.value for each in node.keywords)]
    named = [each.func if isinstance(each, ast.Call) else each for each in given]
    words = [words_of(path_of(each)) for each in named]
    words += [words_of(each.arg) for each in node.keywords if each.arg]
    return any(not _GRADIENTS.isdisjoint(each) for each in words)


def handed_scaler(arguments: Arguments) -> str:
    """`optimizers.scaler_step_all(scaler)`: return the scaler that such a step goes through."""
    for each in (leaf for value in arguments.all() for leaf in leaves_of(value)):
        if isinstance(each, Scaler) and each.live:
            return each.key
        if isinstance(each, Named) and is_scaler_name(each.path):
            return each.path
    return ""


def switch_of(arguments: Arguments) -> Test | None:
    """Return the condition under which the scaler that is handed is on, if there is one."""
    for each in (leaf for value in arguments.all() for leaf in leaves_of(value)):
        if isinstance(each, Scaler) and each.live:
            return each.on
    return None


def is_context(arguments: Arguments) -> bool:
    """`opt.step(context_id)` of distributed autograd keeps its gradients elsewhere."""
    first = arguments.positional[0] if arguments.positional else None
    return isinstance(first, Named) and "context" in first.path
