"""The step stands above its backward, and the clear throws that away."""

import torch
from torch import nn

torch.manual_seed(30)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(6):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.step()  # expect: ZG102
    loss.backward()
