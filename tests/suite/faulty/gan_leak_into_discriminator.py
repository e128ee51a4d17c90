"""The generator's loss fills the discriminator too; it is cleared too early to help."""

import torch
from torch import nn

torch.manual_seed(8)
netG = nn.Linear(3, 5)
netD = nn.Linear(5, 1)
optimizerG = torch.optim.SGD(netG.parameters(), lr=0.05)
optimizerD = torch.optim.SGD(netD.parameters(), lr=0.05)

for it in range(6):
    noise = torch.randn(8, 3)

    optimizerG.zero_grad()
    g_loss = -netD(netG(noise)).mean()
    g_loss.backward()
    optimizerG.step()

    d_loss = netD(netG(noise).detach()).mean() - netD(torch.randn(8, 5)).mean()
    d_loss.backward()
    optimizerD.step()  # expect: ZG201
    optimizerD.zero_grad()
