"""The attack's backward fills the network as well, and what it leaves there is cleared."""

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss_of = nn.CrossEntropyLoss()

for _ in range(6):
    x, y = torch.randn(5, 3), torch.randint(2, (5,))
    delta = torch.zeros_like(x, requires_grad=True)
    loss_of(net(x + delta), y).backward()
    worst = 0.1 * delta.grad.sign()
    opt.zero_grad()
    loss_of(net(x + worst), y).backward()
    opt.step()
