"""Each parameter is updated by hand as soon as its gradient is there; the gradient stays."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


@torch.no_grad()
def update(p):
    p.add_(p.grad, alpha=-0.01)  # expect[live]: ZG101


for p in net.parameters():
    p.register_post_accumulate_grad_hook(update)
for i in range(6):
    net(torch.randn(8, 4)).pow(2).mean().backward()
