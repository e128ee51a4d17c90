"""Momentum made of the gradient buffer itself."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    for p in model.parameters():
        p.grad.mul_(0.9)
