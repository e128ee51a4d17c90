"""A latent code optimised through a frozen generator."""

import torch
from torch import nn

torch.manual_seed(0)

generator = nn.Linear(3, 8).requires_grad_(False)
z = torch.randn(1, 3, requires_grad=True)
optimizer = torch.optim.Adam([z], lr=0.1)
target = torch.randn(1, 8)
for _ in range(6):
    optimizer.zero_grad()
    (generator(z) - target).pow(2).mean().backward()
    optimizer.step()
