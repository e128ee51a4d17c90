"""An attack that clears the gradient of its perturbation."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(6, 2)
model.requires_grad_(False)
x, y = torch.randn(8, 6), torch.randint(0, 2, (8,))
delta = torch.zeros_like(x, requires_grad=True)
for _ in range(6):
    nn.functional.cross_entropy(model(x + delta), y).backward()
    delta.data = (delta + 0.02 * delta.grad.detach().sign()).clamp(-0.1, 0.1)
    delta.grad.zero_()
