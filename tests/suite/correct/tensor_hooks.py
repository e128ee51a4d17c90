"""Hooks that look at gradients and change them."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
norms = []
for p in model.parameters():
    p.register_hook(lambda g: g.clamp(-0.5, 0.5))
    p.register_post_accumulate_grad_hook(lambda q: norms.append(q.grad.norm().item()))
model.register_full_backward_hook(lambda module, grad_in, grad_out: None)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
