"""An optimizer in a wrapper: the fault is where the wrapper is called."""

import torch
from torch import nn


class Lookahead:
    def __init__(self, base, every=3):
        self.base, self.every, self.count = base, every, 0
        self.slow = [p.detach().clone() for group in base.param_groups for p in group["params"]]

    def zero_grad(self):
        self.base.zero_grad()

    def step(self):
        self.base.step()
        self.count += 1
        if self.count % self.every == 0:
            fast = [p for group in self.base.param_groups for p in group["params"]]
            with torch.no_grad():
                for slow, p in zip(self.slow, fast, strict=True):
                    slow.lerp_(p, 0.5)
                    p.copy_(slow)


torch.manual_seed(41)
model = nn.Linear(3, 1)
optimizer = Lookahead(torch.optim.SGD(model.parameters(), lr=0.1))

for x in torch.randn(6, 4, 3):
    model(x).pow(2).mean().backward()
    optimizer.step()  # expect: ZG101
