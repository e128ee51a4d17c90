"""A custom autograd Function that runs a backward inside its own."""

import torch
from torch import nn

torch.manual_seed(0)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            (2 * inner).backward(grad)
        return inner.grad


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    Scaled.apply(model(torch.randn(8, 4))).pow(2).mean().backward()
    optimizer.step()
