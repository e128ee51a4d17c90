"""The loss is scaled, the step is not told."""

import torch
from torch import nn

torch.manual_seed(14)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for _ in range(4):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    scaler.scale(loss).backward()
    optimizer.step()  # expect: ZG303
    scaler.update(1024.0)
