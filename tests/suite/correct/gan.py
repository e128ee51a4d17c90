"""A GAN that clears in time."""

import torch
from torch import nn

torch.manual_seed(0)

G, D = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
for _ in range(6):
    opt_d.zero_grad()
    fake = G(torch.randn(8, 3))
    bce(D(torch.randn(8, 2)), ones).backward()
    bce(D(fake.detach()), zeros).backward()
    opt_d.step()

    opt_g.zero_grad()
    bce(D(fake), ones).backward()
    opt_g.step()
