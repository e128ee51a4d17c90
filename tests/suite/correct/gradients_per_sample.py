"""Gradients per sample, clipped, averaged and assigned."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(80):
    x, y = batch()
    rows = []
    for j in range(8):
        model.zero_grad()
        F.mse_loss(model(x[j : j + 1]), y[j : j + 1]).backward()
        rows.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    mean = torch.stack(rows).clamp(-1, 1).mean(0)
    at = 0
    for p in model.parameters():
        p.grad = mean[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
