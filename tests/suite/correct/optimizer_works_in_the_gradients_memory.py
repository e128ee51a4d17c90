"""An optimizer does its arithmetic in the memory of the gradients, which are cleared."""

import torch
from torch import nn

torch.manual_seed(0)


class Normed(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.div_(p.grad.norm() + 1e-8).add_(p, alpha=0.01)
                    p.sub_(p.grad, alpha=group["lr"])


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = Normed(model.parameters(), lr=0.01)

for i in range(40):
    optimizer.zero_grad()
    model(torch.randn(16, 4)).pow(2).mean().backward()
    optimizer.step()
