"""The clear is skipped whenever the branch with the auxiliary loss is taken."""

import torch
from torch import nn

torch.manual_seed(2)
model = nn.Linear(5, 2)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

for i in range(12):
    out = model(torch.randn(8, 5))
    if i % 2 == 0:
        opt.zero_grad()
        loss = out.pow(2).mean()
    else:
        loss = out.abs().mean()
    loss.backward()
    opt.step()  # expect: ZG101
