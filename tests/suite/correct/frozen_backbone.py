"""The optimizer holds all parameters; half of them are frozen, and thawed later."""

import torch
from torch import nn

torch.manual_seed(0)

backbone, head = nn.Linear(6, 4), nn.Linear(4, 2)
model = nn.Sequential(backbone, nn.ReLU(), head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
backbone.requires_grad_(False)
for epoch in range(8):
    if epoch == 4:
        backbone.requires_grad_(True)
    optimizer.zero_grad()
    model(torch.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
