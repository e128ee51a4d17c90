"""A scaler that is switched off is not there."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=False)
for _ in range(6):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(8, 4)).pow(2).mean()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
