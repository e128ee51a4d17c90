"""The update is made of a copy of the gradient, which may then be cleared before it."""

import torch

torch.manual_seed(0)

w = torch.zeros(4, requires_grad=True)
for _ in range(6):
    (w - torch.randn(4)).pow(2).sum().backward()
    g = w.grad.clone()
    w.grad.zero_()
    w.data -= 0.1 * g

v = torch.zeros(4, requires_grad=True)
moment = torch.zeros(4)
for _ in range(6):
    (v - torch.randn(4)).pow(2).sum().backward()
    moment = 0.9 * moment + 0.1 * v.grad
    v.grad.zero_()
    with torch.no_grad():
        v -= 0.1 * moment

u = torch.zeros(4, requires_grad=True)
for _ in range(6):
    (u - torch.randn(4)).pow(2).sum().backward()
    step = 0.1 * u.grad
    u.grad.zero_()
    with torch.no_grad():
        u.sub_(step)
