"""Exercise 4: accumulate over micro-batches of uneven size.

A batch that does not fit into memory is fed in pieces. `window` micro-batches make
one update, and that update should be the one the whole window would have given
as a single batch: the gradient of the mean loss over all samples of the window.

Micro-batches may hold different numbers of samples, and the last window of an
epoch may be short. It still makes an update, from what it has. `loss_fn` returns
the mean over the samples it is given. Return the number of updates.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    micro_batches: Iterable[tuple[Tensor, Tensor]],
    window: int,
) -> int:
    updates = 0
    for index, (inputs, targets) in enumerate(micro_batches):
        loss = loss_fn(model(inputs), targets) / window
        loss.backward()
        if (index + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    return updates
