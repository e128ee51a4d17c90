"""Each sample is clipped and cleared; the noisy mean is assigned."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(80):
    x, y = batch(4)
    acc = [torch.zeros_like(p) for p in model.parameters()]
    for j in range(4):
        F.mse_loss(model(x[j : j + 1]), y[j : j + 1]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for a, p in zip(acc, model.parameters()):
            a += p.grad
        model.zero_grad()
    for a, p in zip(acc, model.parameters()):
        p.grad = (a + torch.randn_like(a) * 0.1) / 4
    opt.step()
    opt.zero_grad()
