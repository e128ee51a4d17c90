"""Momentum by hand: the gradient is used in one line, the weight changed in the next."""

import torch
from torch import nn

torch.manual_seed(68)
w = nn.Parameter(torch.zeros(4, 1))
x, y = torch.randn(32, 4), torch.randn(32, 1)
velocity = torch.zeros(4, 1)

for _ in range(8):
    (x @ w - y).pow(2).mean().backward()
    with torch.no_grad():
        velocity = 0.9 * velocity + w.grad
        w -= 0.01 * velocity  # expect: ZG101
