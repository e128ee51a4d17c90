"""An optimizer whose step calls that of its class: torch's hooks stand around both."""

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
plain = torch.optim.SGD(other.parameters(), lr=0.01)  # now torch has hooks around its step too
optimizer = Counting(model.parameters(), lr=0.01)


def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(40):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
for _ in range(8):
    optimizer.step(closure)
