"""The gradients are gathered in a list and zeroed between backward and step."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

for i in range(5):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    grads = [p.grad for p in net.parameters() if p.grad is not None]
    if grads:
        torch._foreach_zero_(grads)  # expect: ZG102
    opt.step()
