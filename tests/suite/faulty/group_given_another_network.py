"""The optimizer's group is given the next network, and that one is never cleared."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

for i in range(8):
    opt.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()

net = nn.Linear(4, 2)
opt.param_groups[0]["params"] = list(net.parameters())
for i in range(8):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()  # expect: ZG101
