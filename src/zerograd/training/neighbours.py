"""The gradients of others that a backward of ours also fills, kept out of its way."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from zerograd.training import ownership
from zerograd.training.ownership import Guard, Registry

Held = list[tuple[torch.Tensor, torch.Tensor]]  # whose gradient, and the gradient


class Neighbours:
    """Parameters that are not ours but that our losses reach: a GAN's other half, say.

    Whoever they belong to, our backward must neither add to their gradients nor leave
    any behind.
    """

    __slots__ = ("_as_of", "_guard", "_models", "_parameters")

    def __init__(self, guard: Guard, models: Sequence[nn.Module]) -> None:
        self._guard, self._models = guard, models
        self._parameters: list[torch.Tensor] = []
        self._as_of = -1

    def are_there(self) -> bool:
        """Whether there are any, now that Steps may have come or gone."""
        if self._as_of != Registry.changes:
            self._parameters = ownership.neighbours(self._guard, self._models)
            self._as_of = Registry.changes
        return bool(self._parameters)

    def set_aside(self) -> Held:
        """Take their gradients out of the way of our backward."""
        held = [(p, p.grad) for p in self._parameters if p.grad is not None]
        for neighbour, _ in held:
            neighbour.grad = None
        return held

    def put_back(self, held: Held) -> None:
        """Drop what our backward left with them, and give them back their own."""
        for neighbour in self._parameters:
            if neighbour.grad is not None:
                neighbour.grad = None
        for neighbour, grad in held:
            neighbour.grad = grad
