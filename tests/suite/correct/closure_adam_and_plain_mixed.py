"""Steps with and without a closure, in turn."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for i in range(160):
    x, y = batch()
    if i % 2:

        def closure():
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        opt.step(closure)
    else:
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()
