"""Two steps on one gradient, in a round whose last loss reaches a part of the optimizer only."""

import torch
from torch import nn

torch.manual_seed(31)
encoder, critic = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *critic.parameters()], lr=1e-2)

for _ in range(6):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    critic(encoder(x)).pow(2).mean().backward()
    optimizer.step()
    optimizer.step()  # expect: ZG402
    critic(x).mean().backward()
