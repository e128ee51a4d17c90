"""A loop that survives a bad batch: the solution of the seventh exercise."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
) -> int:
    """Make one update per batch whose gradients are finite; return how many were not."""
    skipped = 0
    for inputs, targets in batches:
        optimizer.zero_grad()  # at the top, where no `continue` can jump over it
        loss_fn(model(inputs), targets).backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if not all(bool(torch.isfinite(grad).all()) for grad in grads):
            skipped += 1
            continue
        optimizer.step()
    return skipped
