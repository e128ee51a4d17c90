"""One scaler, two optimizers, and an update after each step: the second unscales twice."""

import torch
from torch import nn

torch.manual_seed(16)
left, right = nn.Linear(4, 4), nn.Linear(4, 1)
opt_left = torch.optim.SGD(left.parameters(), lr=0.01)
opt_right = torch.optim.SGD(right.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

for _ in range(4):
    opt_left.zero_grad()
    opt_right.zero_grad()
    loss = right(left(torch.randn(8, 4))).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(opt_left)
    scaler.unscale_(opt_right)
    scaler.step(opt_left)
    scaler.update()  # expect: ZG305
    scaler.step(opt_right)
    scaler.update()
