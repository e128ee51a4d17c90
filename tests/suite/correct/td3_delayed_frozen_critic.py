"""The critic is frozen while the actor learns through it."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


actor, critic = (nn.Linear(4, 2), nn.Linear(6, 1))
oa, oc = (torch.optim.Adam(actor.parameters(), 0.001), torch.optim.Adam(critic.parameters(), 0.001))
for i in range(160):
    s, r = (torch.randn(8, 4), torch.randn(8, 1))
    oc.zero_grad()
    F.mse_loss(critic(torch.cat([s, actor(s).detach()], 1)), r).backward()
    oc.step()
    if i % 3 == 0:
        for p in critic.parameters():
            p.requires_grad = False
        oa.zero_grad()
        (-critic(torch.cat([s, actor(s)], 1)).mean()).backward()
        oa.step()
        for p in critic.parameters():
            p.requires_grad = True
