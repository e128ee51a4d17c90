"""The clear throws away what the step was to use."""

import torch
from torch import nn

torch.manual_seed(4)
net = nn.Linear(3, 3)
optim = torch.optim.RMSprop(net.parameters(), lr=0.01)

for batch in torch.randn(5, 7, 3):
    loss = (net(batch) - batch).pow(2).mean()
    loss.backward()
    optim.zero_grad()  # expect: ZG102
    optim.step()
