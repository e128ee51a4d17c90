"""Two tasks in turn; both optimizers hold the shared encoder."""

import torch
from torch import nn

torch.manual_seed(0)

encoder, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt_a = torch.optim.SGD([*encoder.parameters(), *a.parameters()], lr=0.1)
opt_b = torch.optim.SGD([*encoder.parameters(), *b.parameters()], lr=0.1)
for _ in range(6):
    for opt, head in ((opt_a, a), (opt_b, b)):
        opt.zero_grad()
        head(encoder(torch.randn(8, 4))).pow(2).mean().backward()
        opt.step()
