"""Random experts: every backward fills others."""

import torch
from torch import nn

torch.manual_seed(0)

experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(12))
optimizer = torch.optim.SGD(experts.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    chosen = torch.randperm(12)[:3].tolist()
    x = torch.randn(8, 4)
    sum(experts[n](x) for n in chosen).pow(2).mean().backward()
    optimizer.step()
