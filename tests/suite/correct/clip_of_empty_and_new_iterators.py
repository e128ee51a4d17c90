"""A list that holds nothing is clipped too, and each clip has an iterator of its own."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
extra = nn.ModuleList()
others = list(extra.parameters())
optimizer = torch.optim.SGD([*model.parameters(), *others], lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    (model(torch.randn(8, 3)) - torch.randn(8, 1)).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(others, 0.1)
    nn.utils.clip_grad_norm_((p for p in model.parameters() if p.requires_grad), 0.1)
    optimizer.step()
