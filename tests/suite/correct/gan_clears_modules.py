"""The same, cleared through the modules (DCGAN's way)."""

import torch
from torch import nn

torch.manual_seed(0)

netG, netD = nn.Linear(3, 2), nn.Linear(2, 1)
optimizerG = torch.optim.SGD(netG.parameters(), lr=0.1)
optimizerD = torch.optim.SGD(netD.parameters(), lr=0.1)
for _ in range(6):
    netD.zero_grad()
    errD_real = -netD(torch.randn(8, 2)).mean()
    errD_real.backward()
    fake = netG(torch.randn(8, 3))
    errD_fake = netD(fake.detach()).mean()
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    errG = -netD(fake).mean()
    errG.backward()
    optimizerG.step()
