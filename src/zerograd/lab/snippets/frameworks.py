import torch

w = torch.tensor(2.0, requires_grad=True)
for factor in (3.0, 5.0):
    (returned,) = torch.autograd.grad(factor * w, w)
    print(f"autograd.grad returns {returned.item():g}, w.grad is {w.grad}")
for factor in (3.0, 5.0):
    (factor * w).backward()
    print(f"backward() returns nothing, w.grad is {w.grad.item():g}")
