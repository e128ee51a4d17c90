"""Old gradients are kept on purpose, and a comment says so."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()  # zerograd: allow[stale-gradient] the sum of all gradients is wanted
