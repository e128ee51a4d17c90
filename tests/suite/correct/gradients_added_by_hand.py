"""Gradients from autograd.grad are added by hand, and what was used is cleared in every way."""

import torch
from torch import nn

torch.manual_seed(41)


def forget(parameters):
    for p in parameters:
        p.grad.data.zero_()  # moves no counter


def train(way):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parameters = list(model.parameters())
    for p in parameters:
        p.grad = torch.zeros_like(p)
    for _ in range(6):
        if way == "call":
            optimizer.zero_grad(set_to_none=False)
        elif way == "helper":
            forget(parameters)
        for _ in range(2):
            loss = model(torch.randn(8, 4)).pow(2).mean() / 2
            for p, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                p.grad.add_(g)
        optimizer.step()


def decayed():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parameters = list(model.parameters())
    for p in parameters:
        p.grad = torch.zeros_like(p)
    for _ in range(6):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        for p, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            p.grad.mul_(0.9).add_(g)  # momentum, kept in the gradient itself
        optimizer.step()


def through_a_buffer():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parameters = list(model.parameters())
    sums = [torch.zeros_like(p) for p in parameters]
    for _ in range(6):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        torch._foreach_copy_(sums, torch.autograd.grad(loss, parameters))
        for p, kept in zip(parameters, sums, strict=True):
            p.grad = kept
            p.grad += 0.01 * p.detach()
        optimizer.step()


train("call")
train("helper")
decayed()
through_a_buffer()
