"""One helper makes both the backward that is measured and the one that is used."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)


def back(x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss


for i in range(160):
    x, y = batch()
    opt.zero_grad()
    back(x[:1], y[:1])
    g0 = model.weight.grad.clone()
    opt.zero_grad()
    back(x, y)
    opt.step()
