"""Points are added and dropped as training goes on: new parameters are put into the groups."""

import torch
from torch import nn

torch.manual_seed(0)

points = {"at": nn.Parameter(torch.randn(6, 3)), "size": nn.Parameter(torch.rand(6, 1))}
opt = torch.optim.Adam([{"params": [p], "name": name} for name, p in points.items()], lr=0.01)


def densify():
    keep = torch.rand(len(points["at"])) > 0.2
    keep[0] = True
    for group in opt.param_groups:
        old = group["params"][0]
        opt.state.pop(old, None)
        extra = old.detach()[:2] + 0.1 * torch.randn_like(old[:2])
        new = nn.Parameter(torch.cat([old.detach()[keep], extra]))
        group["params"][0] = points[group["name"]] = new


for i in range(90):
    target = torch.randn(4, 3)
    near = torch.cdist(target, points["at"]).exp() * points["size"].T
    near.sum(1).log().mean().backward()
    if i % 20 == 19:
        densify()
    opt.step()
    opt.zero_grad(set_to_none=True)
