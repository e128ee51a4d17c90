"""The same with clipping by value, called by keyword."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_value_

torch.manual_seed(12)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for _ in range(4):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    scaler.scale(loss).backward()
    clip_grad_value_(model.parameters(), clip_value=0.5)  # expect: ZG301
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
