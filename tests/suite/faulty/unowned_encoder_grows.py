"""The encoder belongs to no optimizer, is not frozen, and takes part in the clip."""

import itertools

import torch
from torch import nn

torch.manual_seed(31)
encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)

for _ in range(6):
    optimizer.zero_grad()
    x = torch.randn(4, 8)
    loss = (decoder(encoder(x)) - x).pow(2).mean()
    loss.backward()  # expect[live]: ZG105
    everything = itertools.chain(encoder.parameters(), decoder.parameters())
    torch.nn.utils.clip_grad_norm_(everything, 1.0)
    optimizer.step()
