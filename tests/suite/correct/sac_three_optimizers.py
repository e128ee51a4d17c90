"""Critics, actor and temperature: the actor fills the critics, which are cleared in time."""

import itertools

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


actor, c1, c2 = (nn.Linear(4, 2), nn.Linear(6, 1), nn.Linear(6, 1))
log_alpha = torch.zeros(1, requires_grad=True)
oa = torch.optim.Adam(actor.parameters(), 0.001)
oc = torch.optim.Adam(itertools.chain(c1.parameters(), c2.parameters()), 0.001)
ol = torch.optim.Adam([log_alpha], 0.001)
for i in range(160):
    s, r = (torch.randn(8, 4), torch.randn(8, 1))
    a = torch.tanh(actor(s))
    sa = torch.cat([s, a.detach()], 1)
    lc = F.mse_loss(c1(sa), r) + F.mse_loss(c2(sa), r)
    oc.zero_grad()
    lc.backward()
    oc.step()
    a = torch.tanh(actor(s))
    la = -torch.min(c1(torch.cat([s, a], 1)), c2(torch.cat([s, a], 1))).mean()
    oa.zero_grad()
    la.backward()
    oa.step()
    ll = -(log_alpha.exp() * (a.detach().pow(2).mean() - 0.5)).mean()
    ol.zero_grad()
    ll.backward()
    ol.step()
