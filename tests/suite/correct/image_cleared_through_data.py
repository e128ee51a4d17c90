"""An image follows its gradient; .grad.data.zero_() clears it."""

import torch
from torch import nn

torch.manual_seed(0)


img = torch.randn(1, 3, 8, 8, requires_grad=True)
net = nn.Conv2d(3, 4, 3)
for p in net.parameters():
    p.requires_grad_(False)
for i in range(160):
    net(img).pow(2).mean().backward()
    img.data += 0.01 * img.grad.data / img.grad.data.abs().mean()
    img.grad.data.zero_()
