"""Gradient descent by hand, cleared by hand."""

import torch
from torch import nn

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
x, y = torch.randn(16, 3), torch.randn(16)
for _ in range(6):
    loss = ((x @ w + b) - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
    w.grad.zero_()
    b.grad = None
