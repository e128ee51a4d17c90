"""Clears by hand before the first backward, where there is no gradient yet."""

import torch
from torch import nn

torch.manual_seed(6)
model = nn.Linear(4, 2)
lr = 0.1

for _ in range(3):
    for p in model.parameters():
        p.grad.zero_()  # expect: ZG104
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= lr * p.grad
