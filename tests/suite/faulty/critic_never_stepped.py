"""The critic is cleared and filled, but its optimizer never steps."""

import torch
from torch import nn

torch.manual_seed(10)
actor = nn.Linear(4, 2)
critic = nn.Linear(4, 1)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)

for _ in range(6):
    state = torch.randn(8, 4)
    actor_opt.zero_grad()
    critic_opt.zero_grad()  # expect: ZG203
    value_loss = (critic(state) - torch.randn(8, 1)).pow(2).mean()
    policy_loss = -actor(state).log_softmax(-1)[:, 0].mean()
    (value_loss + policy_loss).backward()
    actor_opt.step()
