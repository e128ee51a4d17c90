"""Two optimizers share a trunk and take turns, each clearing first."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


trunk, h1, h2 = (nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1))
o1 = torch.optim.SGD([*trunk.parameters(), *h1.parameters()], lr=0.01)
o2 = torch.optim.SGD([*trunk.parameters(), *h2.parameters()], lr=0.01)
for i in range(160):
    x, y = batch()
    if i % 2:
        o1.zero_grad()
        F.mse_loss(h1(trunk(x)), y).backward()
        o1.step()
    else:
        o2.zero_grad()
        F.mse_loss(h2(trunk(x)), y).backward()
        o2.step()
