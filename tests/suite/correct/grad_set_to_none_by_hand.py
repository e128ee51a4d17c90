"""`p.grad = None`, as in old speed guides."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    for p in model.parameters():
        p.grad = None
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
