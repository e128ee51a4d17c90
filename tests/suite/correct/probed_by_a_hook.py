"""A first backward in each round is there for a hook, which reads the gradients as they pass."""

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sizes = []
net[0].register_full_backward_hook(lambda layer, into, out: sizes.append(float(out[0].norm())))


def train(model, optimizer):
    for _ in range(6):
        model(torch.randn(5, 3)).abs().mean().backward()
        optimizer.zero_grad()
        (model(torch.randn(5, 3)) - sizes[-1]).pow(2).mean().backward()
        optimizer.step()


train(net, opt)
