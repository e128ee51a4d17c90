"""Exercise 5: an optimizer over a part of the model.

Fine-tuning: `model` has a `backbone` and a `head`. The optimizer holds the head
alone, so the backbone stays as it is. `train_head` makes one update of the head
per batch, with the norm of the HEAD's gradient clipped at `max_norm`.

It starts well, then the head hardly moves any more. Find out why and mend it. The
backbone's gradients must not pile up.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Linear(4, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        out: Tensor = self.head(torch.tanh(self.backbone(inputs)))
        return out


def train_head(
    model: Net,
    optimizer: torch.optim.Optimizer,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
    max_norm: float,
) -> None:
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss_fn(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
