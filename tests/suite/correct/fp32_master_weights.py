"""The optimizer holds copies in float32 and is given gradients by assignment."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1).bfloat16()
master = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
opt = torch.optim.SGD(master, lr=0.01)
for i in range(160):
    x, y = batch()
    model.zero_grad()
    F.mse_loss(model(x.bfloat16()).float(), y).backward()
    for m, p in zip(master, model.parameters()):
        m.grad = p.grad.float()
    opt.step()
    with torch.no_grad():
        for m, p in zip(master, model.parameters()):
            p.copy_(m)
