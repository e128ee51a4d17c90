"""The trunk gets its gradients by hand (PCGrad), the heads by backward, and nothing is cleared."""

import torch
from torch import nn

torch.manual_seed(15)
trunk, left, right = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.SGD([*trunk.parameters(), *left.parameters(), *right.parameters()], lr=0.01)
shared = list(trunk.parameters())

for _ in range(6):
    inner = trunk(torch.randn(8, 4)).relu()
    one, other = (left(inner) - 1).pow(2).mean(), (right(inner) + 1).pow(2).mean()
    ones = torch.autograd.grad(one, shared, retain_graph=True)
    others = torch.autograd.grad(other, shared, retain_graph=True)
    (one + other).backward()
    against = sum((a * b).sum() for a, b in zip(ones, others, strict=True)).clamp(max=0)
    for weight, a, b in zip(shared, ones, others, strict=True):
        weight.grad = a + b - against * b
    opt.step()  # expect: ZG101
