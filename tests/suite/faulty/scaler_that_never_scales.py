"""A scaler steps, and nothing is ever scaled: torch ends the run, and this says why."""

import torch
from torch import nn

torch.manual_seed(83)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")

for _ in range(6):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))
    loss.backward()  # expect: ZG303
    scaler.step(optimizer)
    scaler.update()
