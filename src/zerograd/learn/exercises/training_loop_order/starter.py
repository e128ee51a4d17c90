"""Exercise 3: a training loop in the right order.

`train` should make one update per batch, each from the gradients of that batch
alone, whatever the buffers held before the call, and return the losses as plain
numbers, one per batch, as they were before the update. All four calls are there.
Their order is not right.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
) -> list[float]:
    losses = []
    for inputs, targets in batches:
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses
