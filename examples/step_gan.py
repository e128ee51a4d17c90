"""A small GAN with two Steps: each fills its own parameters only.

python examples/step_gan.py
"""

from __future__ import annotations

import torch
from torch import nn

import zerograd


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 32), nn.LeakyReLU(0.2), nn.Linear(32, outputs))


def main() -> None:
    torch.manual_seed(0)
    generator, discriminator = mlp(2, 1), mlp(1, 1)
    models = [generator, discriminator]
    step_g = zerograd.Step(torch.optim.Adam(generator.parameters(), lr=2e-3), models=models)
    step_d = zerograd.Step(torch.optim.Adam(discriminator.parameters(), lr=2e-3), models=models)
    for round_ in range(200):
        real, z = 2.0 + 0.5 * torch.randn(64, 1), torch.randn(64, 2)
        with step_d:
            fake = generator(z).detach()
            step_d.backward(
                nn.functional.softplus(-discriminator(real)).mean()
                + nn.functional.softplus(discriminator(fake)).mean()
            )
        with step_g:
            step_g.backward(nn.functional.softplus(-discriminator(generator(z))).mean())
        if round_ % 50 == 49:
            with torch.no_grad():
                mean = generator(torch.randn(1000, 2)).mean().item()
            print(f"round {round_ + 1}: the generated mean is {mean:.2f}, the real one 2.00")


if __name__ == "__main__":
    main()
