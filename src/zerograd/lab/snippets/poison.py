import torch

for name in ("zero_()", "None", "times 0"):
    w = torch.nn.Parameter(torch.tensor(1.0))
    (w * float("nan")).backward()
    if name == "zero_()":
        w.grad.zero_()
    elif name == "None":
        w.grad = None
    else:
        w.grad.mul_(0)
    (3 * w).backward()
    print(f"{name}: the next gradient is {w.grad.item():g}")
