"""An LBFGS closure must clear at its beginning."""

import torch
from torch import nn

torch.manual_seed(33)
model = nn.Linear(3, 1)
x, y = torch.randn(16, 3), torch.randn(16, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)


def closure():
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    return loss


for _ in range(4):
    optimizer.step(closure)  # expect: ZG101
