"""At the end of a window its gradients are used if they are good, and cleared in any case."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for i in range(48):
    (model(torch.randn(8, 4)).pow(2).mean() / 3).backward()
    if (i + 1) % 3 == 0:
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if norm < 5.0 and i % 2:  # every second window, say
            optimizer.step()
        optimizer.zero_grad()
