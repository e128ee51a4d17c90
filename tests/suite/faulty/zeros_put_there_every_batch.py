"""New zeros take the gradient's place in each batch, and the step comes every fourth."""

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

for i in range(16):
    for p in net.parameters():
        p.grad = torch.zeros_like(p)  # expect: ZG501
    loss = (net(torch.randn(8, 4)) - 1).pow(2).mean() / 4
    loss.backward()
    if i % 4 == 3:
        opt.step()
