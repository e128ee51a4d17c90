"""A batch that raises inside the backward is skipped, and the clear comes first anyway."""

import torch
from torch import nn

torch.manual_seed(0)


class Brittle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, broken):
        ctx.broken = broken
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        if ctx.broken:
            raise RuntimeError("bad batch")
        return grad, None


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for it in range(8):
    optimizer.zero_grad()
    loss = Brittle.apply(model(torch.randn(8, 4)), it % 3 == 2).pow(2).mean()
    try:
        loss.backward()
    except RuntimeError:
        continue
    optimizer.step()
