"""The loop body lives in a generator."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def batch(n=8, d=4):
    return torch.randn(n, d), torch.randn(n, 1)


class Trainer:
    def __init__(s):
        s.m = nn.Linear(4, 1)
        s.o = torch.optim.SGD(s.m.parameters(), lr=0.01)

    def steps(s):
        while True:
            s.o.zero_grad()
            x, y = yield
            loss = F.mse_loss(s.m(x), y)
            loss.backward()
            s.o.step()


t = Trainer()
g = t.steps()
next(g)
for i in range(160):
    g.send(batch())
