"""Batches that are not finite are left out; those that stay are cleared before their step."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

for i in range(5):
    opt.zero_grad()
    loss = net(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    if not torch.isfinite(loss):
        continue
    opt.zero_grad()  # expect: ZG102
    opt.step()
