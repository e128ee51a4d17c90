"""Backtracking: back to the start, and a shorter step on the same gradients."""

import copy

import torch
from torch import nn

torch.manual_seed(61)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

for _ in range(8):
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    start = copy.deepcopy(model.state_dict())
    for k in range(6):
        optimizer.param_groups[0]["lr"] = 4.0 * 0.5**k
        model.load_state_dict(start)
        optimizer.step()
        with torch.no_grad():
            if nn.functional.mse_loss(model(x), y) < loss:
                break
