"""A hook clears before each forward in training; one more forward comes before the step."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def before(module, inputs):
    if module.training:
        opt.zero_grad()  # expect[live]: ZG102


net.register_forward_pre_hook(before)
for i in range(6):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    with torch.no_grad():
        net(torch.randn(8, 4)).mean()
    opt.step()
