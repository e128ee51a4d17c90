"""An optimizer of its own for each step, which clears what it has used."""

import torch
from torch import nn

torch.manual_seed(64)
model = nn.Linear(4, 1)

for i in range(12):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / (i + 1))
    optimizer.step()
    optimizer.zero_grad()
