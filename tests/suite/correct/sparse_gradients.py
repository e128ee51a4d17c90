"""Sparse gradients of an embedding, with SGD."""

import torch
from torch import nn

torch.manual_seed(0)

table = nn.EmbeddingBag(30, 4, sparse=True, mode="sum")
optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    table(torch.randint(0, 30, (5, 3))).pow(2).mean().backward()
    optimizer.step()
