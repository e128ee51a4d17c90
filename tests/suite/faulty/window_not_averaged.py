"""Four losses are summed; nothing divides them."""

import torch
from torch import nn

torch.manual_seed(23)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()

for i in range(16):
    loss = loss_fn(model(torch.randn(8, 4)), torch.randn(8, 1))
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()  # expect: ZG503
        optimizer.zero_grad()
