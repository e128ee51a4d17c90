"""The module clears what the optimizer steps."""

import torch
from torch import nn

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    net.zero_grad()
    net(torch.randn(3, 4)).pow(2).sum().backward()
    opt.step()
