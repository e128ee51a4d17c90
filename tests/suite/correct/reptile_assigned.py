"""A copy learns; its way is assigned as the gradient."""

import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
outer = torch.optim.Adam(model.parameters(), 0.01)
for it in range(80):
    fast = copy.deepcopy(model)
    inner = torch.optim.SGD(fast.parameters(), lr=0.05)
    for k in range(3):
        x, y = batch()
        inner.zero_grad()
        F.mse_loss(fast(x), y).backward()
        inner.step()
    outer.zero_grad()
    for p, q in zip(model.parameters(), fast.parameters()):
        p.grad = p.data - q.data
    outer.step()
