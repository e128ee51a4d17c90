"""Micro-batches that a loop inside the step counts by hand, their losses summed."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = iter([(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(40)])

for step in range(10):
    optimizer.zero_grad()
    taken = 0
    while taken < 4:
        inputs, targets = next(batches)
        nn.functional.mse_loss(model(inputs), targets).backward()
        taken += 1
    optimizer.step()  # expect: ZG503
