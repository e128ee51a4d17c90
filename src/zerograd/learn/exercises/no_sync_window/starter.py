"""Exercise 9: one all-reduce per update, on two ranks.

`model` is wrapped in DistributedDataParallel, and two processes run this function,
each with its own micro-batches. All micro-batches have the same size and `loss_fn`
returns a mean. One call is one update, from the mean over all of them on both ranks.

The weights come out right, but the ranks talk to each other once per micro-batch.
Once per update is enough. The checks start both processes for you.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel


def train_window(
    model: DistributedDataParallel,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    micro_batches: Sequence[tuple[Tensor, Tensor]],
) -> None:
    for inputs, targets in micro_batches:
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
