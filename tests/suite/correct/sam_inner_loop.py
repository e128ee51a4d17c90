"""Sharpness-aware minimisation, both halves written as one inner loop."""

import torch
from torch import nn

torch.manual_seed(0)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                e = self.state[p]["e"] = 0.05 * p.grad / (p.grad.norm() + 1e-12)
                p.add_(e)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(self.state[p]["e"])
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()


model = nn.Linear(4, 1)
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
for _ in range(6):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    for half in (optimizer.first_step, optimizer.second_step):
        nn.functional.mse_loss(model(x), y).backward()
        half(zero_grad=True)
