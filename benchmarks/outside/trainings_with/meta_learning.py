"""Loops within loops: higher, TorchOpt and learn2learn."""

import torch
from torch import nn

from benchmarks.outside.training import main


def _task():
    x = torch.randn(8, 4)
    return x, x.sum(1, keepdim=True)


def higher_loops(fault):
    import higher

    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    outer = torch.optim.Adam(net.parameters(), 1e-3)
    inner = torch.optim.SGD(net.parameters(), 0.1)
    told = []
    for _ in range(6):
        if fault != "never":
            outer.zero_grad()
        for _ in range(3):
            x, y = _task()
            with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (fast, steps):
                for _ in range(2):
                    steps.step((fast(x) - y).pow(2).mean())
                loss = (fast(x) - y).pow(2).mean()
                loss.backward()
                told.append(loss.detach())
        if fault == "between":
            outer.zero_grad()  # found: between ZG102
        outer.step()  # found: never ZG101
    return [*net.parameters(), *told]


def torchopt_meta(fault):
    import torchopt

    net = nn.Linear(4, 1)
    scale = nn.Parameter(torch.ones(1))
    outer = torch.optim.Adam([scale], 1e-2)
    told = []
    for _ in range(6):
        inner = torchopt.MetaSGD(net, lr=0.1)
        kept = torchopt.extract_state_dict(net)
        x, y = _task()
        for _ in range(2):
            inner.step(((net(x) - y) * scale).pow(2).mean())
        loss = (net(x) - y).pow(2).mean()
        if fault != "never":
            outer.zero_grad()
        loss.backward()
        outer.step()  # found: never ZG101
        told.append(loss.detach())
        torchopt.recover_state_dict(net, kept)
        torchopt.stop_gradient(net)
    return [scale, *told]


def torchopt_plain(fault):
    import torchopt

    net = nn.Linear(4, 1)
    optimizer = torchopt.Adam(net.parameters(), lr=1e-2)
    told = []
    for _ in range(6):
        x, y = _task()
        loss = (net(x) - y).pow(2).mean()
        if fault != "never":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # found: never ZG101
        told.append(loss.detach())
    return [*net.parameters(), *told]


def torchopt_functional(fault):
    import torchopt

    net = nn.Linear(4, 1)
    parameters = tuple(net.parameters())
    optimizer = torchopt.adam(lr=1e-2)
    state = optimizer.init(parameters)
    for _ in range(6):
        x, y = _task()
        loss = (net(x) - y).pow(2).mean()
        grads = torch.autograd.grad(loss, parameters)
        updates, state = optimizer.update(grads, state, inplace=True)
        parameters = torchopt.apply_updates(parameters, updates, inplace=True)
    return net.parameters()


if __name__ == "__main__":
    main()
