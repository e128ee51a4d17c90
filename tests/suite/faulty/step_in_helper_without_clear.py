"""The step hides in a helper that everybody thinks clears."""

import torch
from torch import nn

torch.manual_seed(24)


def update(optimizer, loss):
    loss.backward()
    optimizer.step()  # expect: ZG101


def main():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for _ in range(5):
        update(optimizer, model(torch.randn(8, 4)).pow(2).mean())


main()
