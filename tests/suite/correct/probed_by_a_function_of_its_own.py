"""A first backward in each round is there for a function with a backward of its own."""

import torch
from torch import nn

torch.manual_seed(15)
sizes = []


class Tap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, coming):
        sizes.append(float(coming.abs().mean()))
        return coming


first, last = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)


def train(optimizer):
    for _ in range(6):
        last(Tap.apply(first(torch.randn(5, 3)))).abs().mean().backward()
        optimizer.zero_grad()
        (last(first(torch.randn(5, 3))) - sizes[-1]).pow(2).mean().backward()
        optimizer.step()


train(opt)
