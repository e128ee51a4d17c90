"""The last short window of each epoch is stepped."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
K, batches = 4, 10
for epoch in range(3):
    for i in range(batches):
        size = K if i < batches - batches % K else batches % K
        (model(torch.randn(8, 4)).pow(2).mean() / size).backward()
        if (i + 1) % K == 0 or i + 1 == batches:
            optimizer.step()
            optimizer.zero_grad()
