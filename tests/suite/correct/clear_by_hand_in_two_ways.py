"""Weights are cleared to None, biases to zero, in a way that no counter tells."""

import torch
from torch import nn

torch.manual_seed(62)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(20):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    for name, p in model.named_parameters():
        if name.endswith("weight"):
            p.grad = None
        else:
            p.grad.data.zero_()
