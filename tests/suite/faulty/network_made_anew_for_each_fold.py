"""Each fold has a new network, and the optimizer still holds the first one's parameters."""

import torch
from torch import nn

torch.manual_seed(0)


def make():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))


model = make()
opt = torch.optim.Adam(model.parameters())
for _ in range(3):
    model = make()
    for _ in range(6):
        opt.zero_grad()
        (model(torch.randn(8, 3)) - torch.randn(8, 1)).pow(2).mean().backward()
        opt.step()  # expect: ZG401
