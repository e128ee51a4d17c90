"""An optimizer that is no torch.optim.Optimizer reads the gradient before it uses it."""

import torch
from torch import nn

torch.manual_seed(0)


class Momentum:
    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr
        self.kept = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        for p, kept in zip(self.params, self.kept, strict=True):
            g = p.grad
            kept.mul_(0.9).add_(g)
            p.sub_(self.lr * kept)  # expect[live]: ZG101


net = nn.Linear(4, 2)
opt = Momentum(net.parameters(), lr=0.01)
for i in range(6):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()  # expect[static]: ZG101
