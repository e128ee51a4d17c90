"""TD3: the actor is updated every second time."""

import torch
from torch import nn

torch.manual_seed(0)

actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for it in range(10):
    state, action = torch.randn(8, 4), torch.randn(8, 2)
    critic_loss = (critic(torch.cat([state, action], 1)) - torch.randn(8, 1)).pow(2).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    if it % 2 == 0:
        actor_loss = -critic(torch.cat([state, actor(state)], 1)).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        actor_opt.step()
