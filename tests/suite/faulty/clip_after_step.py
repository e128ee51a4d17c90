"""Clips what has been used already."""

import torch
from torch import nn

torch.manual_seed(15)
rnn = nn.GRU(3, 6, batch_first=True)
opt = torch.optim.SGD(rnn.parameters(), lr=0.1)

for _ in range(4):
    opt.zero_grad()
    out, _ = rnn(torch.randn(2, 5, 3))
    out.pow(2).mean().backward()
    opt.step()
    nn.utils.clip_grad_norm_(rnn.parameters(), max_norm=5.0)  # expect: ZG304
