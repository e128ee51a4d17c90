"""Two networks take turns by a counter; one of them is trained only while it is not too good."""

import torch
from torch import nn

torch.manual_seed(44)
gen, critic = nn.Linear(4, 4), nn.Linear(4, 1)
opt_g = torch.optim.SGD(gen.parameters(), lr=0.01)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.01)
too_good = [False, True, False, True, True, False, True, False, False, True] * 4

for i, is_too_good in enumerate(too_good):
    x = torch.randn(8, 4)
    if (i + 1) % 5 == 0:
        opt_g.zero_grad()
        gen(x).pow(2).mean().backward()
        opt_g.step()
    else:
        opt_c.zero_grad()
        loss = critic(gen(x).detach()).pow(2).mean()
        loss.backward()
        if not is_too_good:
            opt_c.step()
