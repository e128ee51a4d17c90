"""A second step on the same gradients: the clip before it is in time for that one."""

import torch
from torch import nn

torch.manual_seed(42)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(6):
    x, y = torch.randn(12, 3), torch.randn(12, 1)
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()  # expect: ZG402
