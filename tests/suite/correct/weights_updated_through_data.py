"""Weights updated and cleared through .data."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


W = torch.randn(4, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for i in range(160):
    x, y = batch()
    F.mse_loss(x @ W + b, y).backward()
    W.data -= 0.01 * W.grad.data
    b.data -= 0.01 * b.grad.data
    W.grad.data.zero_()
    b.grad.data.zero_()
