"""A clip written by hand, and noise, between backward and step."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(160):
    x, y = batch()
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    total = torch.sqrt(sum((p.grad.pow(2).sum() for p in model.parameters())))
    for p in model.parameters():
        p.grad.mul_(min(1.0, 1.0 / (total.item() + 1e-06)))
        p.grad.add_(torch.randn_like(p.grad) * 0.001)
    opt.step()
