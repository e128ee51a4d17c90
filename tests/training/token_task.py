"""Small models, data with uneven token counts, and the float64 answer to compare with."""

from __future__ import annotations

import copy

import torch
from torch import nn

VOCAB = 32


class TokenModel(nn.Module):
    """Embedding and two linear layers: the loss is a mean over tokens that are not -100."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, 16)
        self.hidden = nn.Linear(16, 24)
        self.head = nn.Linear(24, VOCAB)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.hidden(self.embedding(tokens))))


def token_loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    tokens, targets = batch
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def token_batches(counts: list[int], seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """One batch for each count: 4 x 32 tokens of which `count` have a target."""
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for count in counts:
        tokens = torch.randint(0, VOCAB, (4, 32), generator=generator)
        targets = torch.randint(0, VOCAB, (4, 32), generator=generator)
        hidden = torch.randperm(128, generator=generator)[count:]
        targets.view(-1)[hidden] = -100
        batches.append((tokens, targets))
    return batches


def true_gradient(model: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]):
    """The gradient of one loss over all tokens, in float64."""
    exact = copy.deepcopy(model).double()
    exact.zero_grad()
    tokens = torch.cat([batch[0] for batch in batches])
    targets = torch.cat([batch[1] for batch in batches])
    token_loss(exact, (tokens, targets)).backward()
    return torch.cat([p.grad.flatten() for p in exact.parameters()])


class Recorder(torch.optim.SGD):
    """An optimizer with rate 1 that keeps the gradient it was given, as one vector."""

    def __init__(self, params) -> None:
        super().__init__(params, lr=1.0)
        self.seen: list[torch.Tensor] = []

    def step(self, closure=None):
        parts = [
            torch.zeros_like(p).flatten() if p.grad is None else p.grad.to_dense().flatten()
            for group in self.param_groups
            for p in group["params"]
        ]
        self.seen.append(torch.cat(parts).double())


def relative_error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


def mlp(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
