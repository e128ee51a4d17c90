"""A context manager above steps after the block, which has cleared."""

import contextlib

import torch
from torch import nn


@contextlib.contextmanager
def updating(optimizer):
    optimizer.zero_grad()
    yield
    optimizer.step()


torch.manual_seed(43)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

for x in torch.randn(6, 4, 3):
    with updating(opt):
        net(x).pow(2).mean().backward()
        opt.zero_grad()  # expect: ZG102
