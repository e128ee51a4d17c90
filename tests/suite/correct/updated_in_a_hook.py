"""Each parameter is updated by hand as soon as its gradient is there, and the gradient dropped."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


@torch.no_grad()
def update(p):
    p.add_(p.grad, alpha=-0.01)
    p.grad = None


@torch.no_grad()
def update_and_zero(p):
    p.data.add_(p.grad, alpha=-0.01)
    p.grad.zero_()


for p in net[0].parameters():
    p.register_post_accumulate_grad_hook(update)
for p in net[2].parameters():
    p.register_post_accumulate_grad_hook(update_and_zero)
for i in range(60):
    net(torch.randn(8, 4)).pow(2).mean().backward()
