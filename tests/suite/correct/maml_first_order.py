"""Reptile: a deep copy and an inner optimizer for each task, gradients assigned by hand."""

import torch
from torch import nn

torch.manual_seed(0)

import copy

model = nn.Linear(2, 1)
meta = torch.optim.SGD(model.parameters(), lr=1.0)
for _ in range(5):
    meta.zero_grad()
    for task in range(2):
        clone = copy.deepcopy(model)
        inner = torch.optim.SGD(clone.parameters(), lr=0.05)
        for _ in range(3):
            inner.zero_grad()
            clone(torch.randn(6, 2)).pow(2).mean().backward()
            inner.step()
        for p, q in zip(model.parameters(), clone.parameters()):
            grad = (p.data - q.data) / 2
            p.grad = grad if p.grad is None else p.grad + grad
    meta.step()
