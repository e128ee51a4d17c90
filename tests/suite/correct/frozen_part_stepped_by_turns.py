"""One optimizer holds two heads that take turns and a frozen body: no step is a second one."""

import torch
from torch import nn

torch.manual_seed(15)
body, left, right = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
body.requires_grad_(False)
net = nn.ModuleList([body, left, right])
opt = torch.optim.SGD(net.parameters(), lr=0.1)

for turn in range(8):
    head = left if turn % 2 else right
    head(body(torch.randn(5, 3))).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
    opt.step()
    head.zero_grad()
