"""The closure looks where the gradient leads, clears, and goes backward from there."""

import torch
from torch import nn

torch.manual_seed(42)
model = nn.Linear(3, 1)
x, y = torch.randn(12, 3), torch.randn(12, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def fill():
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    return loss


def closure():
    fill()
    with torch.no_grad():
        ahead = [0.01 * each.grad for each in model.parameters()]
        for each, way in zip(model.parameters(), ahead, strict=True):
            each.add_(way)
    loss = fill()
    with torch.no_grad():
        for each, way in zip(model.parameters(), ahead, strict=True):
            each.sub_(way)
    return loss


for _ in range(6):
    optimizer.step(closure)
