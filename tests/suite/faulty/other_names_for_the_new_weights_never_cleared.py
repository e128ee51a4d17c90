"""Makes new weights in a list and copies them back under other names, and never clears."""

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Linear(3, 1)

for _ in range(5):
    net(torch.randn(5, 3)).pow(2).mean().backward()
    with torch.no_grad():
        new = [weight - 0.1 * weight.grad for weight in net.parameters()]
        for old, value in zip(net.parameters(), new, strict=True):
            old.copy_(value)  # expect[live]: ZG101
