"""The backward was lost in a merge."""

import torch
from torch import nn

torch.manual_seed(17)
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(4):
    optimizer.zero_grad()
    loss = model(torch.randn(3, 2)).sum()
    optimizer.step()  # expect: ZG401
