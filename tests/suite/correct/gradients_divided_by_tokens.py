"""Sums over tokens; the gradients are divided by their number before the step."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
import random

random.seed(0)
for i in range(150):
    n = 0
    for m in range(3):
        k = random.randint(2, 8)
        n += k
        F.mse_loss(*[model(torch.randn(k, 4)), torch.randn(k, 1)], reduction="sum").backward()
    for p in model.parameters():
        p.grad /= n
    opt.step()
    opt.zero_grad()
