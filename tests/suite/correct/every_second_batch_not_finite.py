"""Every second batch overflows and is thrown away; the others train."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for it in range(16):
    x = torch.randn(8, 4)
    if it % 2 == 0:
        x[0] = float("inf")
    model(x).pow(2).mean().backward()
    if not all(p.grad.isfinite().all() for p in model.parameters()):
        optimizer.zero_grad()
        continue
    optimizer.step()
    optimizer.zero_grad()
