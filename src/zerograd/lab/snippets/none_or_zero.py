import torch

for to_none in (False, True):
    used, idle = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    opt = torch.optim.AdamW([used, idle], lr=0.01, weight_decay=0.1)
    (used + 0 * idle).sum().backward()  # idle has a buffer from here on
    for _ in range(1000):
        opt.zero_grad(set_to_none=to_none)
        used.square().sum().backward()  # idle has no part in this loss
        opt.step()
    print(f"set_to_none={to_none}: the idle weight went from 1 to {idle.item():.3f}")
