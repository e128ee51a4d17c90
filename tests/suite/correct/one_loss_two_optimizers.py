"""Sparse and dense parameters of one model, one optimizer each."""

import torch
from torch import nn

torch.manual_seed(0)

table = nn.Embedding(20, 4, sparse=True)
head = nn.Linear(4, 1)
sparse_opt = torch.optim.SparseAdam(table.parameters(), lr=1e-2)
dense_opt = torch.optim.Adam(head.parameters(), lr=1e-2)
for _ in range(6):
    sparse_opt.zero_grad()
    dense_opt.zero_grad()
    loss = head(table(torch.randint(0, 20, (8,)))).pow(2).mean()
    loss.backward()
    sparse_opt.step()
    dense_opt.step()
