"""The critic's loss is not scaled, and its step divides by the scale all the same."""

import torch
from torch import nn

torch.manual_seed(79)
actor, critic = nn.Linear(4, 1), nn.Linear(4, 1)
opt_actor = torch.optim.SGD(actor.parameters(), lr=0.01)
opt_critic = torch.optim.SGD(critic.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for _ in range(6):
    x = torch.randn(8, 4)
    opt_actor.zero_grad()
    opt_critic.zero_grad()
    scaler.scale(nn.functional.mse_loss(actor(x), torch.zeros(8, 1))).backward()
    nn.functional.mse_loss(critic(x), torch.zeros(8, 1)).backward()  # expect: ZG303
    scaler.step(opt_actor)
    scaler.step(opt_critic)
    scaler.update()
