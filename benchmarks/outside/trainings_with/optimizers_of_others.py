"""Optimizers that do more than step: two steps, schedules inside, steps in the backward."""

import torch
from torch import nn

from benchmarks.outside.training import main


def _net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def _loss(net):
    x = torch.randn(8, 4)
    return (net(x) - x.sum(1, keepdim=True)).pow(2).mean()


def sharpness_aware(fault):
    from pytorch_optimizer import SAM

    net, losses = _net(), []
    optimizer = SAM(net.parameters(), torch.optim.SGD, lr=0.05)
    for _ in range(6):
        loss = _loss(net)
        loss.backward()
        optimizer.first_step(zero_grad=True)
        _loss(net).backward()
        optimizer.second_step(zero_grad=True)
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def looking_ahead(fault):
    from pytorch_optimizer import AdamP, Lookahead

    net, losses = _net(), []
    optimizer = Lookahead(AdamP(net.parameters(), lr=1e-2), k=2)
    for _ in range(6):
        if fault != "never":
            optimizer.zero_grad()
        loss = _loss(net)
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def schedule_free(fault):
    import schedulefree

    net, losses = _net(), []
    optimizer = schedulefree.RAdamScheduleFree(net.parameters(), lr=1e-2)
    for turn in range(8):
        optimizer.train()
        loss = _loss(net)
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        if fault not in ("never", "between"):
            optimizer.zero_grad()
        losses.append(loss.detach())
        if turn % 3 == 2:
            optimizer.eval()
            with torch.no_grad():
                losses.append(_loss(net))
    return [*net.parameters(), *losses]


def eight_bits(fault):
    import bitsandbytes

    net, losses = _net(), []
    for kind in (bitsandbytes.optim.AdamW8bit, bitsandbytes.optim.Lion32bit):
        optimizer = kind(net.parameters(), lr=1e-3)
        for _ in range(5):
            if fault != "never":
                optimizer.zero_grad()
            loss = _loss(net)
            loss.backward()
            if fault == "between":
                optimizer.zero_grad()  # found: between ZG102
            optimizer.step()  # found: never ZG101
            losses.append(loss.detach())
        net.zero_grad()
    return [*net.parameters(), *losses]


def timm_scaler(fault):
    from timm.optim import create_optimizer_v2
    from timm.utils import ModelEmaV3, NativeScaler

    net, losses = _net(), []
    optimizer = create_optimizer_v2(net, opt="lamb", lr=1e-2, weight_decay=0.01)
    scaler, kept = NativeScaler("cpu"), ModelEmaV3(net)
    for turn in range(8):
        loss = _loss(net) / 2
        clip = {"clip_grad": 1.0, "clip_mode": "agc", "parameters": list(net.parameters())}
        scaler(loss, optimizer, **clip, need_update=turn % 2 == 1)  # found: never ZG101
        if turn % 2 == 1 and fault != "never":
            optimizer.zero_grad()
        kept.update(net)
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def released_in_the_backward(fault):
    import optimi

    net, losses = _net(), []
    optimizer = optimi.AdamW(net.parameters(), lr=1e-3, gradient_release=True)
    optimi.prepare_for_gradient_release(net, optimizer)
    for _ in range(6):
        loss = _loss(net)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    optimi.remove_gradient_release(net)
    return [*net.parameters(), *losses]


def accumulated_in_the_optimizer(fault):
    import optimi

    net, losses = _net(), []
    optimizer = optimi.AdamW(net.parameters(), lr=1e-3, gradient_release=True)
    optimi.prepare_for_gradient_release(net, optimizer)
    for turn in range(8):
        optimizer.optimizer_accumulation = turn % 2 == 0
        loss = _loss(net)
        loss.backward()
        if turn % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def optimi_plain(fault):
    import optimi

    net, losses = _net(), []
    optimizer = optimi.StableAdamW(net.parameters(), lr=1e-3)
    for _ in range(6):
        loss = _loss(net)
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        if fault not in ("never", "between"):
            optimizer.zero_grad()
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def projected(fault):
    from galore_torch import GaLoreAdamW

    net, losses = _net(), []
    optimizer = GaLoreAdamW(
        [
            {
                "params": [net[0].weight],
                "rank": 2,
                "update_proj_gap": 2,
                "scale": 0.25,
                "proj_type": "std",
            },
            {"params": [net[0].bias, *net[2].parameters()]},
        ],
        lr=1e-2,
    )
    for _ in range(6):
        if fault != "never":
            optimizer.zero_grad()
        loss = _loss(net)
        loss.backward()
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        losses.append(loss.detach())
    return [*net.parameters(), *losses]


def jacobian_descent(fault):
    from torchjd.aggregation import UPGrad
    from torchjd.autojac import backward, jac_to_grad

    net, losses = _net(), []
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    for _ in range(6):
        made = net(torch.randn(8, 4))
        both = [made.pow(2).mean(), (made - 1).abs().mean()]
        if fault != "never":
            optimizer.zero_grad()
        backward(both)
        jac_to_grad(net.parameters(), UPGrad())
        if fault == "between":
            optimizer.zero_grad()  # found: between ZG102
        optimizer.step()  # found: never ZG101
        losses += [each.detach() for each in both]
    return [*net.parameters(), *losses]


if __name__ == "__main__":
    main()
