"""A loss scale by hand, taken out through .data."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
S = 128.0
for i in range(160):
    x, y = batch()
    (F.mse_loss(model(x), y) * S).backward()
    for p in model.parameters():
        p.grad.data.div_(S)
    opt.step()
    for p in model.parameters():
        p.grad.data.zero_()
