"""Gradients are read into a list and applied below; nothing clears them."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
params = list(net.parameters())

for i in range(6):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    with torch.no_grad():
        grads = [p.grad for p in params]
        torch._foreach_add_(params, grads, alpha=-0.01)  # expect[live]: ZG101
