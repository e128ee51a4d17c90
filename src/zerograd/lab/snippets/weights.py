import torch

for to_none in (True, False):
    w = torch.nn.Parameter(torch.tensor(1.0))
    opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    (3 * w).backward()
    opt.step()
    before = w.item()
    opt.zero_grad(set_to_none=to_none)
    cleared = w.item()
    opt.step()
    kind = "None" if to_none else "zero"
    print(f"to {kind}: the clear moves w by {cleared - before:g}, ", end="")
    print(f"the next step by {w.item() - cleared:.2f}")
