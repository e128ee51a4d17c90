"""create_graph and a second backward in the same step."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    (loss + 0.1 * sum(g.pow(2).sum() for g in grads)).backward()
    optimizer.step()
