"""Gradients of each loss are kept, and their sum is written into the last one's memory."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    x, kept = torch.randn(8, 4), []
    for task in range(2):
        optimizer.zero_grad()
        model(x)[:, task].pow(2).mean().backward()
        kept.append([p.grad.clone() for p in model.parameters()])
    for p, a, b in zip(model.parameters(), *kept):
        p.grad.copy_(a + b)
    optimizer.step()
