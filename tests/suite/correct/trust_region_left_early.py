"""Policy epochs end at the first batch that moves too far; its gradients are dropped on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(4, 2)
opt = torch.optim.Adam(policy.parameters(), lr=0.01)

for update in range(12):
    states = torch.randn(4, 8, 4)
    before = policy(states).detach()
    for n, batch in enumerate(states):
        opt.zero_grad()
        out = policy(batch)
        (out * torch.randn(8, 2)).mean().backward()
        moved = (out.detach() - before[n]).pow(2).mean()
        if moved > 1e-9:
            break
        opt.step()
