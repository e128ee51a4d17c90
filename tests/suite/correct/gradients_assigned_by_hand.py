"""Evolution strategies: no backward at all."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    optimizer.step()
