"""New zeros take the gradient's place between backward and step: a clear by another name."""

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)

for _ in range(6):
    x = torch.randn(8, 4)
    (net(x) - 1).pow(2).mean().backward()
    for p in net.parameters():
        p.grad = torch.zeros_like(p)  # expect: ZG102
    opt.step()
