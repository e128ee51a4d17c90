"""The optimizer is there to clear; the weights are updated by hand."""

import torch
from torch import nn

torch.manual_seed(42)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(6):
    x, y = torch.randn(12, 3), torch.randn(12, 1)
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    for each in model.parameters():
        each.data.add_(each.grad, alpha=-0.1)
