"""clip_grad_norm_ with an infinite bound only measures, before or after the step."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for _ in range(6):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(8, 4)).pow(2).mean()).backward()
    scaled = torch.nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
    scaler.step(optimizer)
    scaler.update()
    used = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=float("inf"))
