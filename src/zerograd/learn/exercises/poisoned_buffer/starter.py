"""Exercise 7: one bad batch must not poison the rest.

A batch may give gradients that are not finite (NaN or an infinity). `train` makes
one update per batch, skips the update where a gradient is not finite, and
returns how many it skipped. A skipped batch leaves no mark: the model must end as if
that batch had not been there.

This one skips the bad batch, and then every batch after it.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
) -> int:
    skipped = 0
    for inputs, targets in batches:
        loss_fn(model(inputs), targets).backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if not all(torch.isfinite(grad).all() for grad in grads):
            skipped += 1
            continue
        optimizer.step()
        optimizer.zero_grad()
    return skipped
