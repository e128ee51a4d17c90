"""Every phase makes a new optimizer over the same model."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
for phase in range(8):
    opt = torch.optim.SGD(model.parameters(), lr=0.1 / (phase + 1))
    for i in range(40):
        x, y = batch()
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()
