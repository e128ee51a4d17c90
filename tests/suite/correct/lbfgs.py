"""LBFGS calls its closure many times a step."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
x, y = torch.randn(16, 3), torch.randn(16, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    return loss


for _ in range(4):
    optimizer.step(closure)
