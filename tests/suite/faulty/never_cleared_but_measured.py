"""Gradients are never cleared; their norm is taken for a log after each step."""

import torch
from torch import nn

torch.manual_seed(22)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
norms = []

for _ in range(5):
    net(torch.randn(4, 3)).pow(2).mean().backward()
    opt.step()  # expect: ZG101
    norms.append(nn.utils.clip_grad_norm_(net.parameters(), float("inf")))
