"""The same three steps with a clear in each: every gradient belongs to its own step.

    python examples/zero_grad_cleared.py

prints:

    step 1: loss 0.6060, weight gradient norm 2.674
    step 2: loss 0.5252, weight gradient norm 2.489
    step 3: loss 0.4553, weight gradient norm 2.318

The norms fall as the loss does. The loss is higher than in zero_grad_forgotten.py after
these three steps, and far lower after two hundred.
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, target = torch.randn(1, 10), torch.tensor([[1.0, 0.0]])

for number in range(1, 4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), target)
    loss.backward()
    optimizer.step()
    assert model.weight.grad is not None
    norm = model.weight.grad.norm()
    print(f"step {number}: loss {loss.item():.4f}, weight gradient norm {norm.item():.3f}")
