"""A logging branch skips the clear now and then."""

import torch
from torch import nn

torch.manual_seed(32)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for i in range(210):
    loss = model(torch.randn(2, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()  # expect: ZG101
    if i % 100 == 99:
        continue
    optimizer.zero_grad()
