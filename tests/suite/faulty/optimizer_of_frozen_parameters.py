"""The optimizer was given the backbone, which is frozen, instead of the head."""

import torch
from torch import nn

torch.manual_seed(18)
backbone = nn.Linear(6, 4)
head = nn.Linear(4, 2)
for parameter in backbone.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.Adam(backbone.parameters(), lr=1e-3)

for _ in range(5):
    optimizer.zero_grad()
    loss = head(backbone(torch.randn(4, 6))).pow(2).mean()
    loss.backward()
    optimizer.step()  # expect: ZG401
