"""Every second update by hand uses what the update before it used already."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
for i in range(20):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad  # expect: ZG101
    if i % 2:
        model.zero_grad()
