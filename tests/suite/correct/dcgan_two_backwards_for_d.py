"""Two losses into one step of the discriminator; modules are cleared."""

import torch
from torch import nn

torch.manual_seed(0)


G, D = (nn.Linear(4, 4), nn.Linear(4, 1))
og, od = (torch.optim.Adam(G.parameters(), 0.001), torch.optim.Adam(D.parameters(), 0.001))
bce = nn.BCEWithLogitsLoss()
for i in range(160):
    D.zero_grad()
    real = torch.randn(4, 4)
    e1 = bce(D(real), torch.ones(4, 1))
    e1.backward()
    fake = G(torch.randn(4, 4))
    e2 = bce(D(fake.detach()), torch.zeros(4, 1))
    e2.backward()
    od.step()
    G.zero_grad()
    bce(D(fake), torch.ones(4, 1)).backward()
    og.step()
