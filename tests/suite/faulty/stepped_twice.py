"""Two steps on the same gradients."""

import torch
from torch import nn

torch.manual_seed(19)
model = nn.Linear(3, 1)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

for _ in range(4):
    opt.zero_grad()
    model(torch.randn(4, 3)).pow(2).mean().backward()
    opt.step()
    opt.step()  # expect: ZG402
