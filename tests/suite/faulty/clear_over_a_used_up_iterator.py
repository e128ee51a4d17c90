"""The loop that was to clear finds no parameters: the optimizer has gone through them."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
params = model.parameters()
optimizer = torch.optim.SGD(params, lr=0.1)
for _ in range(8):
    for p in params:
        p.grad = None
    (model(torch.randn(8, 3)) - torch.randn(8, 1)).pow(2).mean().backward()
    optimizer.step()  # expect: ZG101
