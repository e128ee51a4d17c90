"""A small task to train on, and what all measurements share."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import nn
from torch.nn.functional import mse_loss

SEEDS = range(10)

Figures = dict[str, str]  # what it is -> how the page writes it


def task(seed: int, size: int = 256) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A small regression: a two-layer network, and a smooth function of four inputs."""
    torch.manual_seed(seed)
    inputs = torch.randn(size, 4)
    targets = torch.sin(inputs[:, :1]) + 0.5 * inputs[:, 1:2] * inputs[:, 2:3]
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    return model, inputs, targets


def batches(
    inputs: torch.Tensor, targets: torch.Tensor, steps: int
) -> Iterator[list[torch.Tensor]]:
    """Random batches of 32, the same ones for the same seed."""
    order = torch.Generator().manual_seed(0)
    for _ in range(steps):
        chosen = torch.randint(len(inputs), (32,), generator=order)
        yield [inputs[chosen], targets[chosen]]


def train(
    seed: int,
    body: Callable[[nn.Module, torch.optim.Optimizer, list[torch.Tensor]], None],
    *,
    lr: float = 0.1,
    steps: int = 300,
) -> float:
    """Train with `body` as the loop's body; return the loss over all data at the end."""
    model, inputs, targets = task(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for batch in batches(inputs, targets, steps):
        body(model, optimizer, batch)
    return final_loss(model, inputs, targets)


def final_loss(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> float:
    with torch.no_grad():
        return mse_loss(model(inputs), targets).item()


def norm(tensors: list[torch.Tensor | None]) -> float:
    flat = [each.flatten() for each in tensors if each is not None]
    return torch.cat(flat).norm().item() if flat else 0.0


def flat_grad(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def median(values: list[float]) -> float:
    return statistics.median(values)


def ruined(losses: Sequence[float]) -> int:
    """How many runs end no better than they began, or not finite."""
    starts = [final_loss(*task(seed)) for seed in SEEDS]
    return sum(not end < start for start, end in zip(starts, losses, strict=True))


def plain(model: nn.Module, optimizer: torch.optim.Optimizer, batch: list[torch.Tensor]) -> None:
    optimizer.zero_grad()
    mse_loss(model(batch[0]), batch[1]).backward()
    optimizer.step()


def forgotten(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: list[torch.Tensor]
) -> None:
    mse_loss(model(batch[0]), batch[1]).backward()
    optimizer.step()


def window(seed: int, body: Callable[..., None], *, lr: float = 0.2, steps: int = 400) -> float:
    model, inputs, targets = task(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    small = ([x[:4], y[:4]] for x, y in batches(inputs, targets, steps))
    for number, batch in enumerate(small):
        body(model, optimizer, batch, number)
    return final_loss(model, inputs, targets)
