"""Clears by hand what is named weight, and forgets the biases."""

import torch
from torch import nn

torch.manual_seed(65)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())

for _ in range(6):
    for name, p in model.named_parameters():
        if name.endswith("weight"):
            p.grad = None
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()  # expect: ZG101
