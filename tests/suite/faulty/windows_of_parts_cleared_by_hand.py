"""Four parts a batch, two batches an update, and a clear by hand after each batch."""

import torch
from torch import nn

torch.manual_seed(20)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for i in range(14):
    for part in torch.randn(32, 4).split(8):
        loss = model(part).pow(2).mean() / 8
        loss.backward()
    if (i + 1) % 2 == 0:
        optimizer.step()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.zero_()  # expect: ZG501
