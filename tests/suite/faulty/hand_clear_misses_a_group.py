"""Clears the first group of parameters by hand, and not the second."""

import torch
from torch import nn

torch.manual_seed(66)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD(
    [{"params": body.parameters()}, {"params": head.parameters(), "lr": 0.01}], lr=0.05
)

for _ in range(6):
    for p in optimizer.param_groups[0]["params"]:
        p.grad = None
    head(body(torch.randn(8, 4))).pow(2).mean().backward()
    optimizer.step()  # expect: ZG101
