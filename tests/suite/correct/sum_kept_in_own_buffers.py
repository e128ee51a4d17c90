"""Micro-batches are summed in buffers of one's own, and the update by hand uses those."""

import torch
from torch import nn

torch.manual_seed(71)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
sums = [torch.zeros_like(p) for p in model.parameters()]

for i in range(40):
    (model(torch.randn(8, 4)).pow(2).mean() / 4).backward()
    for total, p in zip(sums, model.parameters(), strict=True):
        total += p.grad
        p.grad = None
    if i % 4 == 3:
        with torch.no_grad():
            for total, p in zip(sums, model.parameters(), strict=True):
                p -= 0.1 * total
                total.zero_()
