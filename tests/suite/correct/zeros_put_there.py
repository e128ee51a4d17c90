"""New zeros take the gradient's place: after the step, and for a part that shall stay before it."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)

for _ in range(8):
    loss = (net(torch.randn(8, 4)) - 1).pow(2).mean()
    loss.backward()
    for p in net[0].parameters():
        p.grad = torch.zeros_like(p)
    opt.step()
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
