"""A copy of the model is filled and lends its gradients to the one that steps; none is cleared."""

import torch
from torch import nn

torch.manual_seed(0)
shared, local = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD(shared.parameters(), lr=0.01)

for i in range(8):
    local.load_state_dict(shared.state_dict())
    local(torch.randn(8, 4)).pow(2).mean().backward()
    for mine, ours in zip(local.parameters(), shared.parameters(), strict=True):
        ours._grad = mine.grad
    opt.step()  # expect: ZG101
