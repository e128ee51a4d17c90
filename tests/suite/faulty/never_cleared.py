"""A plain loop without any clear: the classic."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.MSELoss()

for step in range(6):
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()  # expect: ZG101
