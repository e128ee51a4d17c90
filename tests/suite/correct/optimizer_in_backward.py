"""One optimizer a parameter, stepped and cleared in a hook of the backward."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizers = {p: torch.optim.Adam([p], lr=1e-3) for p in model.parameters()}


def hook(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(hook)
for _ in range(6):
    model(torch.randn(8, 4)).pow(2).mean().backward()
