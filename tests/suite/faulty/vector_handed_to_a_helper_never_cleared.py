"""Reads the gradients in one helper and updates all weights in another, and never clears."""

import torch
from torch import nn
from torch.nn import utils

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def slope_of(model):
    return torch.cat([weight.grad.reshape(-1) for weight in model.parameters()])


def move(model, change):
    weights = utils.parameters_to_vector(model.parameters())
    utils.vector_to_parameters(weights + change, model.parameters())  # expect[live]: ZG101


for _ in range(5):
    net(torch.randn(5, 3)).pow(2).mean().backward()
    with torch.no_grad():
        move(net, -0.1 * slope_of(net))
