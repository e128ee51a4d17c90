"""Clips what has been used already, and a head that holds nothing with it."""

import torch
from torch import nn

torch.manual_seed(15)
body, head, spare = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
net = nn.ModuleList([body, head, spare])
opt = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(4):
    opt.zero_grad()
    head(body(torch.randn(5, 3))).pow(2).mean().backward()
    opt.step()
    nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)  # expect: ZG304
