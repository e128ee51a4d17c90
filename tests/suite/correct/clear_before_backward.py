"""The clear between forward and backward."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), fused=True)
for _ in range(6):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
