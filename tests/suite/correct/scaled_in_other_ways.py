"""The factor is in the loss, though scaler.scale() was not given that: by hand, and deep below."""

import torch
from torch import nn

torch.manual_seed(89)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

for turn in range(12):
    optimizer.zero_grad()
    out = model(torch.randn(8, 4))
    if turn % 2:
        scaler.scale(out.mean())
        (out.mean() * scaler.get_scale()).backward()
    else:
        deep = scaler.scale(out)
        for _ in range(100):
            deep = torch.tanh(deep)
        deep.mean().backward()
    scaler.step(optimizer)
    scaler.update()
