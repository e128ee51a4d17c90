"""The list that is cleared was made before the optimizer was given the first layer."""

import torch
from torch import nn

torch.manual_seed(70)
body, head = nn.Linear(4, 8).requires_grad_(False), nn.Linear(8, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
cleared = list(head.parameters())

for i in range(12):
    if i == 4:
        body.requires_grad_(True)
        optimizer.add_param_group({"params": body.parameters()})
    head(body(torch.randn(8, 4))).pow(2).mean().backward()
    optimizer.step()  # expect: ZG101
    for p in cleared:
        p.grad = None
