"""Clears by hand in the wrong place."""

import torch
from torch import nn

torch.manual_seed(28)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(5):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    for p in model.parameters():
        p.grad = None  # expect: ZG102
    optimizer.step()
