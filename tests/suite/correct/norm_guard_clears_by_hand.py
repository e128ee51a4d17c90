"""A guard clears by hand before the step, and so does the loop after it."""

import torch
from torch import nn

torch.manual_seed(3)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

for turn in range(30):
    x = torch.randn(8, 4) * (100 if turn % 6 > 3 else 1)
    (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    norm = sum(float(p.grad.norm()) for p in model.parameters())
    if norm > 500:
        for p in model.parameters():
            p.grad = None
    optimizer.step()
    for p in model.parameters():
        p.grad = None
