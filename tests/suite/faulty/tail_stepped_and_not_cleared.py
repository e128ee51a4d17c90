"""What an epoch's last window left is stepped behind the loop, and nothing clears it there."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(10)]
accumulate = 4

for epoch in range(5):
    done = 0
    for inputs, targets in batches:
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        loss.backward()
        done += 1
        if done == accumulate:
            optimizer.step()  # expect: ZG101
            optimizer.zero_grad()
            done = 0
    if done:
        optimizer.step()
