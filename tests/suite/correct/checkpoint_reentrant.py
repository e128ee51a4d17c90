"""Activation checkpointing, use_reentrant=True."""

import torch
from torch import nn

torch.manual_seed(0)

from torch.utils.checkpoint import checkpoint

first, second = nn.Linear(4, 4), nn.Linear(4, 4)
head = nn.Linear(4, 1)
params = [*first.parameters(), *second.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(params, lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    h = torch.relu(first(torch.randn(8, 4)))
    h = checkpoint(lambda t: torch.relu(second(t)), h, use_reentrant=True)
    head(h).pow(2).mean().backward()
    optimizer.step()
