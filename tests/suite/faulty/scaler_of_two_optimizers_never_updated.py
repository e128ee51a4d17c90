"""Two optimizers share a scaler that is never updated: one update is missing, and told once."""

import torch
from torch import nn

torch.manual_seed(15)
encoder, decoder = nn.Linear(3, 4), nn.Linear(4, 1)
opt_e = torch.optim.SGD(encoder.parameters(), lr=0.1)
opt_d = torch.optim.SGD(decoder.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)

for _ in range(4):
    opt_e.zero_grad()
    opt_d.zero_grad()
    scaler.scale(decoder(encoder(torch.randn(5, 3))).pow(2).mean()).backward()
    scaler.step(opt_e)  # expect: ZG302
    scaler.step(opt_d)
