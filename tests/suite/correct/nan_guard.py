"""A batch whose loss is not finite is thrown away after its backward."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for it in range(12):
    x = torch.randn(8, 4)
    if it % 3 == 1:
        x[0, 0] = float("nan")
    loss = model(x).pow(2).mean()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if not torch.isfinite(norm):
        optimizer.zero_grad()
        continue
    optimizer.step()
    optimizer.zero_grad()
