"""Windows of uneven micro-batches: the solution of the fourth exercise."""

from collections.abc import Callable, Iterable
from itertools import islice

import torch
from torch import Tensor, nn


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    micro_batches: Iterable[tuple[Tensor, Tensor]],
    window: int,
) -> int:
    """Make one update per window, as the whole window in one batch would; return how many."""
    updates = 0
    pieces = iter(micro_batches)
    optimizer.zero_grad()
    while held := list(islice(pieces, window)):
        samples = sum(len(inputs) for inputs, _ in held)
        for inputs, targets in held:
            loss = loss_fn(model(inputs), targets)
            (loss * (len(inputs) / samples)).backward()
        optimizer.step()
        optimizer.zero_grad()
        updates += 1
    return updates
