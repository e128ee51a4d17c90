"""The closure throws away what it has just computed."""

import torch
from torch import nn

torch.manual_seed(42)
model = nn.Linear(3, 1)
x, y = torch.randn(16, 3), torch.randn(16, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)


def closure():
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.zero_grad()  # expect: ZG102
    return loss


for _ in range(4):
    optimizer.step(closure)
