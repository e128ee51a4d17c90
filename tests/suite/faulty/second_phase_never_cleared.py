"""The first phase is right; fine-tuning was copied without the clear."""

import torch
from torch import nn

torch.manual_seed(27)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

for _ in range(6):
    opt.zero_grad()
    model(torch.randn(4, 4)).pow(2).mean().backward()
    opt.step()

for _ in range(6):
    model(torch.randn(4, 4)).abs().mean().backward()
    opt.step()  # expect: ZG101
