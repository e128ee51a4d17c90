"""A wrapper that steps the optimizer it is made of."""

import torch
from torch import nn

torch.manual_seed(0)


class Lookahead(torch.optim.Optimizer):
    def __init__(self, inner, k=3):
        super().__init__(inner.param_groups, dict(k=k))
        self.inner, self.calls = inner, 0
        self.slow = [p.detach().clone() for p in self._params()]

    def _params(self):
        return [p for group in self.param_groups for p in group["params"]]

    def step(self, closure=None):
        self.inner.step()
        self.calls += 1
        if self.calls % 3 == 0:
            with torch.no_grad():
                for p, s in zip(self._params(), self.slow):
                    s.add_(p - s, alpha=0.5)
                    p.copy_(s)


model = nn.Linear(4, 1)
optimizer = Lookahead(torch.optim.SGD(model.parameters(), lr=0.1))
for _ in range(8):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
