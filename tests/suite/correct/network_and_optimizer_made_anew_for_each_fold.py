"""Each fold has a new network, and an optimizer of its own."""

import torch
from torch import nn

torch.manual_seed(0)


def make():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    return model, torch.optim.Adam(model.parameters())


model, opt = make()
for _ in range(3):
    model, opt = make()
    for _ in range(6):
        opt.zero_grad()
        (model(torch.randn(8, 3)) - torch.randn(8, 1)).pow(2).mean().backward()
        opt.step()
