"""The guard against large losses is the wrong way round: every batch is thrown away."""

import torch
from torch import nn

torch.manual_seed(3)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

for _ in range(24):
    x = torch.randn(8, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    if loss.item() < 1000:
        optimizer.zero_grad()  # expect[live]: ZG102
    optimizer.step()
