"""Accumulation that never clears: every window holds all before it."""

import torch
from torch import nn

torch.manual_seed(21)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for i in range(12):
    loss = model(torch.randn(8, 4)).pow(2).mean() / 3
    loss.backward()
    if i % 3 == 2:
        optimizer.step()  # expect: ZG101
