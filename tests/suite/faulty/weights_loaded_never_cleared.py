"""Updates the weights by loading new ones, and never clears."""

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Linear(3, 1)

for _ in range(5):
    net(torch.randn(5, 3)).pow(2).mean().backward()
    new = {name: each.detach() - 0.1 * each.grad for name, each in net.named_parameters()}
    net.load_state_dict(new)  # expect[live]: ZG101
