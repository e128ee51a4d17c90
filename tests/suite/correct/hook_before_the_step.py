"""Hooks around the step that measure and clear, each in time."""

import torch
from torch import nn

torch.manual_seed(73)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
norms = []


def measure(opt, args, kwargs):
    grads = [p.grad for group in opt.param_groups for p in group["params"] if p.grad is not None]
    norms.append(torch.nn.utils.get_total_norm(grads))


def clear(opt, args, kwargs):
    opt.zero_grad()


optimizer.register_step_pre_hook(measure)
optimizer.register_step_post_hook(clear)
for _ in range(40):
    loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))
    loss.backward()
    optimizer.step()
