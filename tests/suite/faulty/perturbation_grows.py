"""An attack that never clears the gradient of its perturbation."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)
model = nn.Linear(10, 3)
for p in model.parameters():
    p.requires_grad_(False)
x = torch.randn(4, 10)
y = torch.randint(0, 3, (4,))
delta = torch.zeros_like(x, requires_grad=True)

for _ in range(6):
    loss = F.cross_entropy(model(x + delta), y)
    loss.backward()
    delta.data += 0.01 * delta.grad.sign()  # expect: ZG202
