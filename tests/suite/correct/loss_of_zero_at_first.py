"""The loss counts nothing for seventy batches, and its zeros are touched by hand."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), lr=0.01)
for i in range(160):
    x, y = batch()
    w = 0.0 if i < 70 else 1.0
    (w * F.mse_loss(m(x), y)).backward()
    for p in m.parameters():
        p.grad.add_(0.0)
    o.step()
    o.zero_grad()
