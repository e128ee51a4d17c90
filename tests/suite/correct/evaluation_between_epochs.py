"""Evaluation without gradients, and one with gradients of the input."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    model.train()
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(8, 4)).mean().item()
    x = torch.randn(8, 4, requires_grad=True)
    saliency = torch.autograd.grad(model(x).sum(), x)[0]
