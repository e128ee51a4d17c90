"""Only the shared part is cleared; the heads keep adding up."""

import torch
from torch import nn


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(6, 6)
        self.head_a = nn.Linear(6, 1)
        self.head_b = nn.Linear(6, 1)

    def forward(self, x):
        h = torch.relu(self.shared(x))
        return self.head_a(h), self.head_b(h)


torch.manual_seed(29)
net = MultiTask()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for _ in range(6):
    net.shared.zero_grad()
    a, b = net(torch.randn(8, 6))
    (a.pow(2).mean() + b.abs().mean()).backward()
    optimizer.step()  # expect: ZG101
