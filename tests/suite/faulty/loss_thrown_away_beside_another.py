"""Two losses in each round with a clear between them: the first one is never used."""

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(6):
    opt.zero_grad()
    near = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    near.backward()
    opt.zero_grad()  # expect: ZG102
    small = net(torch.randn(5, 3)).abs().mean()
    small.backward()
    opt.step()
