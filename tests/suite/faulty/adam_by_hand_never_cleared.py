"""Adam written as a function: the weights change after their moments, and are never cleared."""

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
weights = list(net.parameters())
moments = [(torch.zeros_like(each), torch.zeros_like(each)) for each in weights]


def adam(weights, moments, turn, rate=0.01):
    with torch.no_grad():
        for weight, (first, second) in zip(weights, moments, strict=True):
            first.mul_(0.9).add_(weight.grad, alpha=0.1)
            second.mul_(0.999).addcmul_(weight.grad, weight.grad, value=0.001)
            scale = (second / (1 - 0.999**turn)).sqrt() + 1e-8
            weight.addcdiv_(first / (1 - 0.9**turn), scale, value=-rate)  # expect[live]: ZG101


for turn in range(1, 6):
    net(torch.randn(5, 3)).pow(2).mean().backward()
    adam(weights, moments, turn)
