"""Accumulates four micro-batches, and clears before each of them."""

import torch
from torch import nn

torch.manual_seed(20)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulation_steps = 4

for i in range(16):
    optimizer.zero_grad()  # expect: ZG501
    loss = model(torch.randn(8, 4)).pow(2).mean() / accumulation_steps
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
