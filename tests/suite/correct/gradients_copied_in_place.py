"""Gradients of a worker's model are copied into the master's buffers."""

import torch
from torch import nn

torch.manual_seed(0)

worker, master = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD(master.parameters(), lr=0.1)
for p in master.parameters():
    p.grad = torch.zeros_like(p)
for _ in range(6):
    worker.load_state_dict(master.state_dict())
    worker.zero_grad()
    worker(torch.randn(8, 4)).pow(2).mean().backward()
    for source, target in zip(worker.parameters(), master.parameters()):
        target.grad.copy_(source.grad)
    optimizer.step()
