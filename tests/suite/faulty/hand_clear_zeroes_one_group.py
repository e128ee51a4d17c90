"""Only the gradients of the first group are zeroed; the second group's add up."""

import torch
from torch import nn

torch.manual_seed(0)

body, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD(
    [{"params": body.parameters()}, {"params": head.parameters(), "lr": 0.01}], lr=0.05
)

for _ in range(6):
    for p in body.parameters():
        if p.grad is not None:
            p.grad.zero_()
    head(body(torch.randn(8, 4))).pow(2).mean().backward()
    optimizer.step()  # expect: ZG101
