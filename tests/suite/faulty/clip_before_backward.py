"""Clips before the backward has filled anything."""

import torch
from torch import nn

torch.manual_seed(21)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(5):
    opt.zero_grad()
    loss = net(torch.randn(4, 3)).pow(2).mean()
    nn.utils.clip_grad_norm_(net.parameters(), max_norm=5.0)  # expect: ZG304
    loss.backward()
    opt.step()
