"""A closure that accumulates two micro-batches, with an optimizer that calls it once."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(5):

    def closure():
        optimizer.zero_grad()
        total = 0.0
        for _ in range(2):
            loss = model(torch.randn(4, 3)).pow(2).mean() / 2
            loss.backward()
            total += loss.item()
        return total

    optimizer.step(closure)
