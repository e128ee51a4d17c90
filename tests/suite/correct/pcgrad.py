"""Gradients of two losses are taken, cleared, projected and assigned."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    out, kept = model(torch.randn(8, 4)), []
    for loss in (out[:, 0].pow(2).mean(), out[:, 1].abs().mean()):
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        kept.append([p.grad.clone() for p in model.parameters()])
    optimizer.zero_grad()
    for p, a, b in zip(model.parameters(), *kept):
        dot = (a * b).sum()
        p.grad = a + b - (dot / (b.norm() ** 2 + 1e-9)) * b * (dot < 0)
    optimizer.step()
