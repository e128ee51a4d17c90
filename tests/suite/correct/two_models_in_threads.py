"""Two models trained in two threads, and a loader with threads of its own."""

import torch
from torch import nn

torch.manual_seed(0)

import threading


def train(seed):
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()


threads = [threading.Thread(target=train, args=(n,)) for n in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
