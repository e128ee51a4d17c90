"""Accelerate: accumulation, clipping, several optimizers, a scaler on the CPU."""

import torch
from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.outside.training import main


def _net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def _data(count=28):
    return DataLoader(TensorDataset(torch.randn(count, 4), torch.randn(count, 1)), 4)


def windows(fault):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = _net()
    model, optimizer, data = accelerator.prepare(net, torch.optim.AdamW(net.parameters()), _data())
    losses = []
    for _ in range(3):
        for x, y in data:
            with accelerator.accumulate(model):
                loss = (model(x) - y).pow(2).mean()
                accelerator.backward(loss)
                if fault == "between":
                    optimizer.zero_grad()
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()  # found: never ZG101
                if fault != "never":
                    optimizer.zero_grad()
                losses.append(loss.detach())
    return [*net.parameters(), *losses]


def windows_cleared_by_the_model(fault):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = _net()
    model, optimizer, data = accelerator.prepare(
        net, torch.optim.SGD(net.parameters(), 0.1), _data()
    )
    for _ in range(3):
        for x, y in data:
            with accelerator.accumulate(model):
                accelerator.backward((model(x) - y).pow(2).mean())
                optimizer.step()
                clears = model if fault == "early" else optimizer
                clears.zero_grad()  # found: early ZG501
    return net.parameters()


def scaler(fault):
    accelerator = Accelerator(cpu=True)
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=4)
    net = _net()
    model, optimizer, data = accelerator.prepare(net, torch.optim.AdamW(net.parameters()), _data())
    losses = []
    for _ in range(3):
        for x, y in data:
            optimizer.zero_grad()
            loss = accelerator.scaler.scale((model(x) - y).pow(2).mean())
            accelerator.backward(loss)
            if fault == "clip":
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # found: clip ZG301
            elif fault != "around":
                accelerator.scaler.unscale_(optimizer.optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            if fault == "around":
                optimizer.optimizer.step()  # found: around ZG303
            else:
                accelerator.scaler.step(optimizer.optimizer)
                accelerator.scaler.update()
            losses.append(loss.detach())
    return [*net.parameters(), *losses]


def two_models(fault):
    plugin = GradientAccumulationPlugin(num_steps=2, sync_with_dataloader=False)
    accelerator = Accelerator(cpu=True, gradient_accumulation_plugin=plugin)
    one, two = _net(), _net()
    first, second = (torch.optim.SGD(each.parameters(), 0.05) for each in (one, two))
    one, two, first, second, data = accelerator.prepare(one, two, first, second, _data(32))
    for _ in range(2):
        for x, y in data:
            with accelerator.accumulate(one, two):
                accelerator.backward((one(x) - y).pow(2).mean() + (two(x) - y).abs().mean())
                for optimizer in (first, second):
                    optimizer.step()  # found: never ZG101
                    if fault != "never" or optimizer is first:
                        optimizer.zero_grad()
    return [*one.parameters(), *two.parameters()]


def steps_and_schedule(fault):
    accelerator = Accelerator(cpu=True, step_scheduler_with_optimizer=True)
    net = _net()
    own = torch.optim.SGD(net.parameters(), 0.05)
    schedule = torch.optim.lr_scheduler.StepLR(own, 2)
    net, own, data, schedule = accelerator.prepare(net, own, _data(), schedule)
    for x, y in data:
        accelerator.backward((net(x) - y).pow(2).mean())
        own.step()
        schedule.step()
        own.zero_grad()
        if fault == "again":
            own.step()  # found: again ZG401
    return net.parameters()


if __name__ == "__main__":
    main()
