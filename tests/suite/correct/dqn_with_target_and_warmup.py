"""Nothing is trained until the memory is full; gradients are clamped in place, through .data."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


q, tgt = (nn.Linear(4, 2), nn.Linear(4, 2))
tgt.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), 0.001)
memory = []
for i in range(160):
    memory.append(torch.randn(4))
    if len(memory) < 40:
        continue
    s = torch.stack(memory[-8:])
    with torch.no_grad():
        t = tgt(s).max(1).values
    loss = F.smooth_l1_loss(q(s).gather(1, torch.zeros(8, 1, dtype=torch.long)).squeeze(1), t + 1)
    opt.zero_grad()
    loss.backward()
    for p in q.parameters():
        p.grad.data.clamp_(-1, 1)
    opt.step()
    if i % 25 == 0:
        tgt.load_state_dict(q.state_dict())
