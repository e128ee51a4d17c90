"""Only some heads have a gradient; only these are clipped."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


m = nn.ModuleList([nn.Linear(4, 1) for _ in range(4)])
o = torch.optim.SGD(m.parameters(), lr=0.01)
for i in range(160):
    x, y = batch()
    F.mse_loss(m[i % 4](x), y).backward()
    ps = [p for p in m.parameters() if p.grad is not None]
    nn.utils.clip_grad_norm_(ps, 1.0)
    o.step()
    o.zero_grad()
