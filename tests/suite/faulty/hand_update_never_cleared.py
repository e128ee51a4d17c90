"""Gradient descent by hand on a module, without a clear."""

import torch
from torch import nn

torch.manual_seed(26)
model = nn.Linear(3, 1)
x, y = torch.randn(32, 3), torch.randn(32, 1)

for _ in range(8):
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.05 * p.grad  # expect: ZG101
