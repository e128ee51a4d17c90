"""A part of the model is frozen and freed again every twenty batches."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(160):
    part = i // 20 % 2
    for p in model[0].parameters():
        p.requires_grad_(part == 0)
    x, y = batch()
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()
