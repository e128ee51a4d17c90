"""An optimizer moves a weight of the loss itself, by a rule that asks for no gradient: it grows."""

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
weight = torch.nn.Parameter(torch.ones(1))


class Dual(torch.optim.SGD):
    def step(self, closure=None):
        loss = super().step(closure)
        weight.data = (weight.data * 0.9 + 0.2).clamp(0, 10)
        return loss


opt = Dual(net.parameters(), lr=0.01)
for _ in range(8):
    opt.zero_grad()
    loss = (net(torch.randn(8, 4)) * weight - 1).pow(2).mean()
    loss.backward()  # expect[live]: ZG105
    opt.step()
