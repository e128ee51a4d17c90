"""The clear at the end, to zero, with a foreach optimizer."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
for _ in range(6):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
