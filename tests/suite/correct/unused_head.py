"""Each batch trains one of two heads; the other has no gradient."""

import torch
from torch import nn

torch.manual_seed(0)

trunk, heads = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=1e-3)
for it in range(10):
    optimizer.zero_grad()
    heads[it % 2](torch.relu(trunk(torch.randn(8, 4)))).pow(2).mean().backward()
    optimizer.step()
