"""A loss fills the target network too: it is moved, but no one uses its gradients."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(40):
    loss = (net(torch.randn(8, 4)) - 0.9 * target(torch.randn(8, 4))).pow(2).mean()
    opt.zero_grad()
    loss.backward()  # expect[live]: ZG105
    for p in net.parameters():
        p.grad.data.clamp_(-1, 1)
    opt.step()
    if step % 2:
        target.load_state_dict(net.state_dict())
    else:
        for p, q in zip(net.parameters(), target.parameters(), strict=True):
            q.data.copy_(0.1 * p.data + 0.9 * q.data)
