"""One optimizer for networks that come one after the other: its group is given the next."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
nets = [net]

for phase in range(5):
    for i in range(8):
        opt.zero_grad()
        net(torch.randn(8, 4)).pow(2).mean().backward()
        opt.step()
    net = nn.Linear(4, 2)
    nets.append(net)  # the one before stays alive
    opt.param_groups[0]["params"] = list(net.parameters())
    opt.state.clear()
