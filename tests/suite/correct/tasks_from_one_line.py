"""Three tasks, one line, one step."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


net = nn.Linear(4, 3)
o = torch.optim.Adam(net.parameters())
tasks = {
    "a": lambda z: z[:, 0].pow(2).mean(),
    "b": lambda z: z[:, 1].abs().mean(),
    "c": lambda z: F.softplus(z[:, 2]).mean(),
}


def train_step(x):
    o.zero_grad()
    for name, fn in tasks.items():
        fn(net(x)).backward()
    o.step()


for i in range(160):
    train_step(torch.randn(8, 4))
