"""Exercise 8: a loss scaler that meets an overflow.

Mixed precision training multiplies the loss by a large scale before backward(), and
`GradScaler` divides it out again and skips a step whose gradients overflowed. Make
`train` do one update per batch with the TRUE gradient norm clipped at `max_norm`. Return
the scaler's scale after each batch, as a list of floats.

After one overflow this loop never makes another update; and its clip is much too
strict. (The scaler works on the CPU as well, so you need no GPU.)
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
    max_norm: float,
) -> list[float]:
    scales = []
    for inputs, targets in batches:
        loss = loss_fn(model(inputs), targets)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales
