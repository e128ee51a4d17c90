"""A flag tells when the window ends; the clear does not ask it, and windows differ in size."""

import torch
from torch import nn

torch.manual_seed(44)
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(3):
    batches = torch.randn(8, 4, 3)
    for i, x in enumerate(batches, start=1):
        opt.zero_grad()  # expect: ZG501
        (model(x).pow(2).mean() / 3).backward()
        ends = i % 3 == 0 or i == len(batches)
        if ends:
            opt.step()
