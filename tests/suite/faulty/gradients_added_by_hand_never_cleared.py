"""Gradients from autograd.grad are added by hand, to those that the last step has used."""

import torch
from torch import nn

torch.manual_seed(40)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
parameters = list(model.parameters())

for _ in range(6):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    for p, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        if p.grad is None:
            p.grad = g.clone()
        else:
            p.grad += g
    optimizer.step()  # expect[live]: ZG101
