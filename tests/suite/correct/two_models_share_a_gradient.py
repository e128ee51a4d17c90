"""Both models share one gradient; clearing either clears both."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


glob, local = (nn.Linear(4, 1), nn.Linear(4, 1))
opt = torch.optim.SGD(glob.parameters(), lr=0.01)
for i in range(160):
    local.load_state_dict(glob.state_dict())
    x, y = batch()
    opt.zero_grad()
    local.zero_grad()
    F.mse_loss(local(x), y).backward()
    for g, mine in zip(glob.parameters(), local.parameters()):
        if g.grad is not None:
            break
        g._grad = mine.grad
    opt.step()
