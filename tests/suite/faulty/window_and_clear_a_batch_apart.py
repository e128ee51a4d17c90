"""The step comes with batch 0, 4, 8, the clear with 3, 7, 11: of four batches three are lost."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

for i in range(24):
    (net(torch.randn(8, 4)).pow(2).mean() / 4).backward()
    if i % 4 == 0:  # expect[static]: ZG504
        opt.step()
    if (i + 1) % 4 == 0:
        opt.zero_grad()  # expect[live]: ZG501
