"""Adversarial training: the attacked input is a new leaf in each iteration."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()
for _ in range(6):
    x, y = torch.randn(8, 6), torch.randint(0, 2, (8,))
    x.requires_grad_(True)
    loss_fn(model(x), y).backward()
    attacked = (x + 0.1 * x.grad.sign()).detach()
    optimizer.zero_grad()
    loss_fn(model(attacked), y).backward()
    optimizer.step()
