"""Squares of gradients are gathered sample by sample, then training goes on."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
fisher = [torch.zeros_like(p) for p in model.parameters()]
for _ in range(5):
    model.zero_grad()
    model(torch.randn(1, 4)).log_softmax(-1)[0, 0].backward()
    for f, p in zip(fisher, model.parameters()):
        f += p.grad.pow(2)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
