"""Gradient penalty through autograd.grad, five critic steps to one of the generator."""

import torch
from torch import nn

torch.manual_seed(0)

G, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-4)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4)
for it in range(4):
    for _ in range(5):
        real, fake = torch.randn(8, 2), G(torch.randn(8, 3)).detach()
        mix = (real + torch.rand(8, 1) * (fake - real)).requires_grad_(True)
        grads = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)[0]
        penalty = 10 * (grads.norm(2, dim=1) - 1).pow(2).mean()
        loss = critic(fake).mean() - critic(real).mean() + penalty
        opt_c.zero_grad()
        loss.backward()
        opt_c.step()
    opt_g.zero_grad()
    (-critic(G(torch.randn(8, 3))).mean()).backward()
    opt_g.step()
