"""Discriminators are frozen while the generators learn."""

import itertools

import torch
from torch import nn

torch.manual_seed(0)


G, Fn, DA, DB = (nn.Linear(4, 4) for _ in range(4))
og = torch.optim.Adam(itertools.chain(G.parameters(), Fn.parameters()), 0.001)
da, db = (torch.optim.Adam(DA.parameters(), 0.001), torch.optim.Adam(DB.parameters(), 0.001))
for i in range(160):
    a, b = (torch.randn(4, 4), torch.randn(4, 4))
    for d in (DA, DB):
        for p in d.parameters():
            p.requires_grad_(False)
    og.zero_grad()
    fb, fa = (G(a), Fn(b))
    (
        DB(fb).pow(2).mean()
        + DA(fa).pow(2).mean()
        + (Fn(fb) - a).abs().mean()
        + (G(fa) - b).abs().mean()
    ).backward()
    og.step()
    for d in (DA, DB):
        for p in d.parameters():
            p.requires_grad_(True)
    da.zero_grad()
    ((DA(a) - 1).pow(2).mean() + DA(fa.detach()).pow(2).mean()).backward()
    da.step()
    db.zero_grad()
    ((DB(b) - 1).pow(2).mean() + DB(fb.detach()).pow(2).mean()).backward()
    db.step()
