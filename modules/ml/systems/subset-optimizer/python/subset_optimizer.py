"""An optimizer over a part of the model: the solution of the fifth exercise."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def train_head(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
    max_norm: float,
) -> None:
    """Make one update of the head per batch, its own gradient norm clipped."""
    for inputs, targets in batches:
        model.zero_grad()  # the optimizer's would pass the backbone by
        loss_fn(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.head.parameters(), max_norm)
        optimizer.step()
    model.zero_grad()
