"""torch refuses the second step; the finding says why."""

import torch
from torch import nn

torch.manual_seed(13)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for _ in range(4):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # expect: ZG302
