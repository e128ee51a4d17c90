"""An optimizer whose step calls that of its class, and nobody clears."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class Counting(torch.optim.SGD):
    steps = 0

    def step(self, closure=None):
        self.steps += 1
        return super().step(closure)


x, y = torch.randn(8, 4), torch.randn(8, 1)
model, other = nn.Linear(4, 1), nn.Linear(4, 1)
plain = torch.optim.SGD(other.parameters(), lr=0.01)
optimizer = Counting(model.parameters(), lr=0.01)
for _ in range(8):
    F.mse_loss(model(x), y).backward()
    optimizer.step()  # expect: ZG101
