"""Model and perturbation learn from the same backward."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
delta = torch.zeros(8, 4, requires_grad=True)
for i in range(70):
    x, y = batch()
    for r in range(4):
        loss = F.mse_loss(model(x + delta), y)
        opt.zero_grad()
        loss.backward()
        g = delta.grad.detach()
        delta.data = (delta.data + 0.01 * g.sign()).clamp(-0.1, 0.1)
        delta.grad.zero_()
        opt.step()
