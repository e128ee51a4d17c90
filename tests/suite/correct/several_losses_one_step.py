"""Three backwards into one step, sharing a graph."""

import torch
from torch import nn

torch.manual_seed(0)

trunk, heads = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=1e-3)
for _ in range(5):
    optimizer.zero_grad()
    h = torch.relu(trunk(torch.randn(8, 4)))
    for n, head in enumerate(heads):
        head(h).pow(2).mean().backward(retain_graph=n < 2)
    optimizer.step()
