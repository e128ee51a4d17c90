"""One way to train: what is made, and in which contexts it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

Context = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Made:
    """A model's parameters, what steps them, and a loss that is computed anew at each call."""

    parameters: Sequence[Tensor]
    optimizer: Any
    loss: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Way:
    """How to train."""

    name: str
    make: Callable[[], Made]
    whole: Context = field(default=nullcontext)
    forward: Context = field(default=nullcontext)
    backward: Context = field(default=nullcontext)
    keeps_graph: bool = False
    rounds: int = 12


def small() -> nn.Module:
    """Return a small model."""
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def sgd(parameters: Any) -> torch.optim.Optimizer:
    """Return the plainest optimizer."""
    return torch.optim.SGD(parameters, lr=0.01)


def made(
    model: Callable[[], Any] = small,
    optimizer: Callable[[Any], Any] = sgd,
    *,
    loss: Callable[[Any, Tensor], Tensor] | None = None,
    inputs: Callable[[], Tensor] = lambda: torch.randn(16, 4),
) -> Callable[[], Made]:
    """Return how to make it: a model and its optimizer, on random inputs that stay."""

    def make() -> Made:
        net = model()
        parameters = list(net.parameters())
        given = inputs()
        use = loss if loss is not None else _squares
        return Made(parameters, optimizer(parameters), lambda: use(net, given))

    return make


def _squares(net: Any, given: Tensor) -> Tensor:
    squares: Tensor = net(given).pow(2)
    return squares.mean()
