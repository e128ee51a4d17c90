"""A hook that runs before the step clears what the step would use."""

import torch
from torch import nn

torch.manual_seed(71)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def before_step(opt, args, kwargs):
    opt.zero_grad()  # expect[live]: ZG102


optimizer.register_step_pre_hook(before_step)
for _ in range(6):
    loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))
    loss.backward()
    optimizer.step()
