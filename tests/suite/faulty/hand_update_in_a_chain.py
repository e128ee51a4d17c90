"""Weights updated by hand and kept in bounds in one statement, never cleared."""

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)

for _ in range(6):
    loss = (net(torch.randn(8, 4)) - 1).pow(2).mean()
    loss.backward()
    for p in net.parameters():
        p.data.sub_(p.grad, alpha=0.01).clamp_(-3, 3)  # expect: ZG101
