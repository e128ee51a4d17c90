"""An optimizer clears in its own way and calls no super()."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


class My(torch.optim.SGD):
    def zero_grad(self, set_to_none=True):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is not None:
                    p.grad.data.zero_()


model = nn.Linear(4, 1)
opt = My(model.parameters(), lr=0.01)
for i in range(160):
    x, y = batch()
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()
