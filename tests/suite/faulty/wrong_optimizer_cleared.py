"""Two optimizers; the one that steps is not the one that is cleared."""

import torch
from torch import nn

torch.manual_seed(3)
encoder = nn.Linear(6, 4)
head = nn.Linear(4, 1)
enc_opt = torch.optim.SGD(encoder.parameters(), lr=0.01)
head_opt = torch.optim.SGD(head.parameters(), lr=0.01)

for _ in range(5):
    head_opt.zero_grad()
    loss = head(torch.tanh(encoder(torch.randn(4, 6)))).pow(2).mean()
    loss.backward()
    enc_opt.step()  # expect: ZG101
    head_opt.step()
