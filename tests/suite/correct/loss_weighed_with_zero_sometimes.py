"""Each third loss is weighed with zero: its gradients are zeros, and nobody cleared them."""

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
    w = 0.0 if i % 3 == 0 else 1.0
    o.zero_grad()
    (w * F.mse_loss(m(x), y)).backward()
    o.step()
