"""Epochs over one batch that end early."""

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


net = nn.Linear(4, 3)
opt = torch.optim.Adam(net.parameters(), 0.003)
for it in range(60):
    s, a, adv = (torch.randn(32, 4), torch.randint(0, 3, (32,)), torch.randn(32))
    with torch.no_grad():
        old = F.log_softmax(net(s), 1).gather(1, a[:, None]).squeeze(1)
    for ep in range(4):
        stop = False
        for idx in torch.randperm(32).split(8):
            lp = F.log_softmax(net(s[idx]), 1).gather(1, a[idx][:, None]).squeeze(1)
            ratio = (lp - old[idx]).exp()
            loss = -torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx]).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()
            if (old[idx] - lp).mean() > 0.02:
                stop = True
                break
        if stop:
            break
