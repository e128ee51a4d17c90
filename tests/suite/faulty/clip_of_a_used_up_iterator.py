"""The optimizer has gone through the iterator, so there is nothing left to clip."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
params = filter(lambda p: p.requires_grad, model.parameters())
optimizer = torch.optim.SGD(params, lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    (model(torch.randn(8, 3)) - torch.randn(8, 1)).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(params, 0.1)  # expect: ZG304
    optimizer.step()
