"""Some losses overflow; the scaler skips those steps."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
for it in range(10):
    loss = model(torch.randn(8, 4)).pow(2).mean() * (float("inf") if it % 4 == 1 else 1.0)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
