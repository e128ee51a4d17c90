"""Only the head whose turn it is gets gradients, and only those are cleared."""

import torch
from torch import nn

torch.manual_seed(63)
trunk = nn.Linear(4, 8)
heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.05)

for i in range(30):
    head = heads[i % 3]
    for p in (*trunk.parameters(), *head.parameters()):
        p.grad = None
    head(trunk(torch.randn(8, 4))).pow(2).mean().backward()
    optimizer.step()
