"""Three steps that never clear: the gradients pile up, and yet the loss looks fine.

    python examples/zero_grad_forgotten.py
    zerograd check examples/zero_grad_forgotten.py

prints (the forgetful loss is *lower* after three steps, see zero_grad_cleared.py):

    step 1: loss 0.6060, weight gradient norm 2.674
    step 2: loss 0.5252, weight gradient norm 5.163
    step 3: loss 0.3857, weight gradient norm 7.296

The norm nearly doubles with the second step, because the bucket holds both gradients.
It is often said that such a run learns nothing. Three steps cannot show that: the first
ones all point downhill, so using them again goes downhill faster. The run turns worse
some steps later and swings around the minimum for ever, for plain SGD without a clear
is SGD with momentum exactly 1.0.
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, target = torch.randn(1, 10), torch.tensor([[1.0, 0.0]])

for number in range(1, 4):
    loss = nn.functional.mse_loss(model(inputs), target)
    loss.backward()
    optimizer.step()
    assert model.weight.grad is not None
    norm = model.weight.grad.norm()
    print(f"step {number}: loss {loss.item():.4f}, weight gradient norm {norm.item():.3f}")
