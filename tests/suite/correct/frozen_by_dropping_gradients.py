"""The first layer is kept still for a while: its gradients go before the step."""

import torch
from torch import nn

torch.manual_seed(69)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for i in range(20):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    if i < 8:
        for p in model[0].parameters():
            p.grad = None
    optimizer.step()
