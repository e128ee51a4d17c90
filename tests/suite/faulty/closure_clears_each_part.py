"""The closure clears before each part of its batch, so that only the last one counts."""

import torch
from torch import nn

torch.manual_seed(42)
model = nn.Linear(3, 1)
x, y = torch.randn(12, 3), torch.randn(12, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)


def closure():
    total = 0.0
    for part in range(3):
        optimizer.zero_grad()  # expect: ZG501
        rows = slice(4 * part, 4 * part + 4)
        loss = (model(x[rows]) - y[rows]).pow(2).mean() / 3
        loss.backward()
        total += loss.item()
    return total


for _ in range(4):
    optimizer.step(closure)
