"""Seven batches in windows of three: one is left over and joins the next epoch."""

import torch
from torch import nn

torch.manual_seed(22)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
K = 3

for epoch in range(5):
    for i in range(7):
        loss = model(torch.randn(8, 4)).pow(2).mean() / K
        loss.backward()
        if (i + 1) % K == 0:
            optimizer.step()  # expect: ZG502
            optimizer.zero_grad()
