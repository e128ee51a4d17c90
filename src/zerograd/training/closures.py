"""Optimizers that evaluate the loss themselves, several times a step, as LBFGS does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.optim import Optimizer

from zerograd.errors import StepError
from zerograd.training.arguments import evaluate, refuse_loss
from zerograd.training.normalise import DeviceLedger, HostLedger, Weight
from zerograd.training.ranks import Ranks

Evaluation = tuple[Callable[[], torch.Tensor], Weight]


def are_wanted(optimizers: Sequence[Optimizer], scaler: object) -> bool:
    """Whether the Step's optimizer needs functions; such a one cannot share its Step."""
    if not any(needs_closure(each) for each in optimizers):
        return False
    if len(optimizers) > 1 or scaler is not None:
        raise StepError(
            f"{type(optimizers[0]).__name__} evaluates its loss several times a step. "
            "It needs a Step of its own, without a scaler."
        )
    return True


def needs_closure(optimizer: Optimizer) -> bool:
    """Whether this optimizer evaluates the loss itself, as LBFGS does."""
    if isinstance(optimizer, torch.optim.LBFGS):
        return True
    try:
        closure = inspect.signature(optimizer.step).parameters.get("closure")
    except (TypeError, ValueError):
        return False
    return closure is not None and closure.default is inspect.Parameter.empty


def check_evaluation(loss: object, optimizer: Optimizer) -> Callable[[], torch.Tensor]:
    if callable(loss) and not isinstance(loss, torch.Tensor):
        return loss
    raise StepError(
        f"{type(optimizer).__name__} evaluates the loss several times a step, so it needs a "
        "function: step.backward(lambda: loss_fn(model(x), y))"
    )


def send_all(
    evaluations: Sequence[Evaluation],
    send: Callable[[torch.Tensor, Weight], None],
    ledger: HostLedger | DeviceLedger,
    ranks: Ranks | None,
) -> torch.Tensor:
    """Evaluate and send backward every loss of a window; return their mean, over all ranks."""
    total: Any = 0.0
    last = len(evaluations) - 1
    for index, (function, weight) in enumerate(evaluations):
        if ranks is not None:
            ranks.before_batch(index == last)
        loss = evaluate(function)
        if not loss.requires_grad or loss.numel() != 1:
            refuse_loss(loss)
        send(loss, weight)
        total = total + loss.detach() * weight
    weights, _ = ledger.state()
    if ranks is not None:
        total = ranks.sum_on_device(total.double())
        weights = ranks.sum_on_host(weights)
    mean: torch.Tensor = (total / weights).reshape(())
    return mean
