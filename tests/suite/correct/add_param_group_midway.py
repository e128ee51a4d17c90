"""Parameters join the optimizer halfway through."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 1)})
opt = torch.optim.Adam(model["b"].parameters(), lr=0.001)
for i in range(160):
    if i == 100:
        opt.add_param_group({"params": list(model["a"].parameters())})
    x, y = batch()
    h = model["a"](x)
    if i < 100:
        h = h.detach()
    F.mse_loss(model["b"](h), y).backward()
    opt.step()
    opt.zero_grad()
