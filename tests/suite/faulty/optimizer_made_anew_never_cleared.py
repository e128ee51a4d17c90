"""One step an epoch, each by an optimizer made for it, and the gradients stay."""

import torch
from torch import nn

torch.manual_seed(67)
model = nn.Linear(4, 1)
x, y = torch.randn(32, 4), torch.randn(32, 1)

for epoch in range(6):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / (epoch + 1))
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()  # expect: ZG101
