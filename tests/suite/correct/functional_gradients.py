"""torch.func gives the gradients; the update is by hand."""

import torch
from torch import nn

torch.manual_seed(0)

from torch.func import functional_call, grad, vmap

model = nn.Linear(3, 1)
params = {k: v.detach().clone() for k, v in model.named_parameters()}


def loss_of(params, x):
    return functional_call(model, params, x.unsqueeze(0)).pow(2).mean()


for _ in range(5):
    per_sample = vmap(grad(loss_of), in_dims=(None, 0))(params, torch.randn(8, 3))
    params = {k: p - 0.1 * per_sample[k].mean(0) for k, p in params.items()}
