"""Cleared to zero or to None: since PyTorch 2.0 None is what you get without asking.

    python examples/zero_grad_set_to_none.py

prints:

    zero_grad()                    leaves None
    zero_grad(set_to_none=True)    leaves None
    zero_grad(set_to_none=False)   leaves zeros
    after step(), never None       True
    same weights in all three      True

So `set_to_none=True` changes nothing any more. It is also said that a check for None
after the step shows the difference; it does not, because backward() has filled the
gradient again by then. None is seen between the clear and the backward. The weights
are the same here because every parameter gets a gradient in every step; where one is
idle at times, momentum, Adam and weight decay make None and zeros train differently.
"""

import torch
from torch import nn


def train(**how: bool) -> tuple[torch.Tensor, object, bool]:
    """Return the final weights, what the last clear left, and whether step() left gradients."""
    torch.manual_seed(0)
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, target = torch.randn(1, 10), torch.tensor([[1.0, 0.0]])
    left: object = None
    kept = True
    for _ in range(3):
        optimizer.zero_grad(**how)
        left = model.weight.grad if model.weight.grad is None else "zeros"
        loss = nn.functional.mse_loss(model(inputs), target)
        loss.backward()
        optimizer.step()
        kept = kept and all(p.grad is not None for p in model.parameters())
    return model.weight.detach(), left, kept


runs = {
    "zero_grad()": train(),
    "zero_grad(set_to_none=True)": train(set_to_none=True),
    "zero_grad(set_to_none=False)": train(set_to_none=False),
}
for call, (_weight, left, _kept) in runs.items():
    print(f"{call:<30} leaves {left}")
first, *others = (weight for weight, _, _ in runs.values())
print(f"{'after step(), never None':<30} {all(kept for *_, kept in runs.values())}")
print(f"{'same weights in all three':<30} {all(torch.equal(first, each) for each in others)}")
