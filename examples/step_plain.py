"""A plain training loop with Step: fit a line.

python examples/step_plain.py
"""

from __future__ import annotations

import torch
from torch import nn

import zerograd


def main() -> None:
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 128).unsqueeze(1)
    y = 3 * x - 1 + 0.05 * torch.randn_like(x)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=40, gamma=0.5)
    step = zerograd.Step(optimizer, models=[model], clip=1.0, scheduler=scheduler)
    for epoch in range(20):
        for rows in torch.randperm(len(x)).split(32):
            with step:
                step.backward(nn.functional.mse_loss(model(x[rows]), y[rows]))
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: norm before the clip {step.grad_norm:.3f}")
    print(f"y = {model.weight.item():.2f} x {model.bias.item():+.2f}")


if __name__ == "__main__":
    main()
