"""The step is guarded against norms that are not finite; the clear before it is not."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01)

for i in range(5):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.zero_grad()  # expect: ZG102
    if torch.isfinite(norm):
        opt.step()
