"""The same through `.data`, which no counter tells of."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def update(p):
    p.data -= 0.01 * p.grad  # expect[live]: ZG101


for p in net.parameters():
    p.register_post_accumulate_grad_hook(update)
for i in range(6):
    net(torch.randn(8, 4)).pow(2).mean().backward()
