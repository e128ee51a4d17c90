"""The window grows during the run."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), lr=0.01)
n = 0
for i in range(500):
    k = 2 if i < 200 else 5
    x, y = batch()
    (F.mse_loss(m(x), y) / k).backward()
    n += 1
    if n >= k:
        o.step()
        o.zero_grad()
        n = 0
