"""All gradients are zero after a real backward; zero does not mean cleared."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
with torch.no_grad():
    model[0].bias.fill_(-100.0)
    model[2].bias.fill_(0.0)
    model[2].weight.fill_(0.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    (model(torch.randn(8, 4)).sum() * 0.0).backward()
    optimizer.step()
