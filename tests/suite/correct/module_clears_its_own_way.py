"""A module clears in its own way."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


class Net(nn.Linear):
    def zero_grad(self, set_to_none=True):
        for p in self.parameters():
            p.grad = None


net = Net(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(160):
    x, y = batch()
    F.mse_loss(net(x), y).backward()
    opt.step()
    net.zero_grad()
