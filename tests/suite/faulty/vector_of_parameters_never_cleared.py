"""Updates all weights at once, as a vector, and never clears."""

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

for _ in range(5):
    net(torch.randn(5, 3)).pow(2).mean().backward()
    with torch.no_grad():
        slope = parameters_to_vector([weight.grad for weight in net.parameters()])
        weights = parameters_to_vector(net.parameters())
        weights = weights - 0.1 * slope
        vector_to_parameters(weights, net.parameters())  # expect[live]: ZG101
