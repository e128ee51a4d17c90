"""The second loss goes backward after the step, and the next round begins with a clear."""

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(6):
    opt.zero_grad()
    near = (net(torch.randn(5, 3)) - 1).pow(2).mean()
    near.backward()
    opt.step()
    small = net(torch.randn(5, 3)).abs().mean()
    small.backward()  # expect: ZG102
