"""`.grad.data.zero_()` moves no counter."""

import torch
from torch import nn

torch.manual_seed(0)

w = nn.Parameter(torch.randn(4, 1))
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(6):
    (torch.randn(8, 4) @ w).pow(2).mean().backward()
    optimizer.step()
    w.grad.data.zero_()
