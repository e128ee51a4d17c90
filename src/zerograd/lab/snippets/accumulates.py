import torch

w = torch.tensor(2.0, requires_grad=True)
for factor in (3, 5, 3):
    (factor * w).backward()
    print(f"after d({factor}w)/dw: {w.grad.item():g}")
