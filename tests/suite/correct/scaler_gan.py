"""Two scalers, two optimizers."""

import torch
from torch import nn

torch.manual_seed(0)


G, D = (nn.Linear(4, 4), nn.Linear(4, 1))
og, od = (torch.optim.Adam(G.parameters(), 0.001), torch.optim.Adam(D.parameters(), 0.001))
sg, sd = (torch.amp.GradScaler("cpu", init_scale=8.0), torch.amp.GradScaler("cpu", init_scale=8.0))
for i in range(160):
    od.zero_grad()
    sd.scale(D(G(torch.randn(4, 4)).detach()).mean() - D(torch.randn(4, 4)).mean()).backward()
    sd.step(od)
    sd.update()
    og.zero_grad()
    sg.scale(-D(G(torch.randn(4, 4))).mean()).backward()
    sg.step(og)
    sg.update()
