"""Second-order MAML: inner updates through autograd.grad, outer through backward."""

import torch
from torch import nn

torch.manual_seed(0)

from torch.func import functional_call

model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
meta_opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    meta_opt.zero_grad()
    for task in range(3):
        fast = dict(model.named_parameters())
        for _ in range(2):
            loss = functional_call(model, fast, torch.randn(5, 1)).pow(2).mean()
            grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            fast = {k: p - 0.1 * g for (k, p), g in zip(fast.items(), grads)}
        (functional_call(model, fast, torch.randn(5, 1)).pow(2).mean() / 3).backward()
    meta_opt.step()
