"""One scaler, two optimizers, one update."""

import torch
from torch import nn

torch.manual_seed(0)

a, b = nn.Linear(4, 4), nn.Linear(4, 1)
opt_a = torch.optim.SGD(a.parameters(), lr=0.1)
opt_b = torch.optim.Adam(b.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for _ in range(6):
    opt_a.zero_grad()
    opt_b.zero_grad()
    scaler.scale(b(torch.tanh(a(torch.randn(8, 4)))).pow(2).mean()).backward()
    for opt in (opt_a, opt_b):
        scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_([*a.parameters(), *b.parameters()], 1.0)
    scaler.step(opt_a)
    scaler.step(opt_b)
    scaler.update()
