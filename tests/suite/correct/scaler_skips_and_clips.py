"""The scaler skips steps on infinite gradients."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
sc = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=20)
for i in range(160):
    x, y = batch()
    if i % 37 == 5:
        x = x * float("inf")
    opt.zero_grad()
    sc.scale(F.mse_loss(model(x), y)).backward()
    sc.unscale_(opt)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    sc.step(opt)
    sc.update()
