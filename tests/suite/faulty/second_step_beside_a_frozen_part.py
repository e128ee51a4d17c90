"""Steps twice on the same gradients; what is frozen or unused has none, and no say in it."""

import torch
from torch import nn

torch.manual_seed(15)
body, head, spare = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
net = nn.ModuleList([body, head, spare])
body.requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

for _ in range(4):
    opt.zero_grad()
    head(body(torch.randn(5, 3))).pow(2).mean().backward()
    opt.step()
    opt.step()  # expect: ZG402
