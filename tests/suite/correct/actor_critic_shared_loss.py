"""One loss, two optimizers that share nothing, stepped after each other."""

import torch
from torch import nn

torch.manual_seed(0)

actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(6):
    state = torch.randn(8, 4)
    advantage = torch.randn(8, 1) - critic(state)
    policy_loss = -(actor(state).log_softmax(-1)[:, :1] * advantage.detach()).mean()
    value_loss = advantage.pow(2).mean()
    actor_opt.zero_grad()
    critic_opt.zero_grad()
    (policy_loss + 0.5 * value_loss).backward()
    actor_opt.step()
    critic_opt.step()
