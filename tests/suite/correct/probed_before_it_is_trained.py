"""A first backward in each round is there to be looked at by a logger, and is cleared."""

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sizes = []


def log_sizes(model):
    sizes.append([float(each.grad.norm()) for each in model.parameters()])


def train(model, optimizer):
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).abs().mean().backward()
        log_sizes(model)
        optimizer.zero_grad()
        (model(torch.randn(5, 3)) - 1).pow(2).mean().backward()
        optimizer.step()


train(net, opt)
