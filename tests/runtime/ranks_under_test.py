"""What one rank runs in `test_replicas`: a training named on the command line, and its findings."""

from __future__ import annotations

import contextlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from zerograd import watch

K = 3


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def batch():
    return torch.randn(8, 4)


def ddp(clear=True, **options):
    net = DistributedDataParallel(model(), **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(6):
        if clear:
            optimizer.zero_grad()
        net(batch()).pow(2).mean().backward()
        optimizer.step()


def windows(kind, **options):
    net = DistributedDataParallel(model(), **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(4):
        for n in range(K):
            quiet = n < K - 1 and kind != "always"
            with net.no_sync() if quiet else contextlib.nullcontext():
                if kind == "outside" and n == K - 1:
                    with net.no_sync():
                        loss = net(batch()).pow(2).mean() / K
                else:
                    loss = net(batch()).pow(2).mean() / K
                loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def raw():
    net = model()
    wrapped = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        net(batch()).pow(2).mean().backward()
        optimizer.step()


def fsdp(clear=True, sync=True):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))  # where there is a GPU, it would be the default
    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(5):
        for n in range(2):
            if not sync:
                net.set_requires_gradient_sync(n == 1)
            (net(batch()).pow(2).mean() / 2).backward()
        optimizer.step()
        if clear:
            optimizer.zero_grad()


def flat(net, **options):
    """FSDP1, which makes one flat parameter of all that are in `net`."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(net, device_id=torch.device("cpu"), **options)


def original(clear=True, accumulate=1, frozen=False):
    """FSDP1 that leaves the parameters in place, as parts of the flat one."""
    inner = model()
    inner[0].bias.requires_grad_(not frozen)
    net = flat(inner, use_orig_params=True)
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-3)
    for _ in range(6):
        for n in range(accumulate):
            with net.no_sync() if n < accumulate - 1 else contextlib.nullcontext():
                (net(batch()).pow(2).mean() / accumulate).backward()
        net.clip_grad_norm_(1.0)
        optimizer.step()
        if clear:
            optimizer.zero_grad()


def halves():
    """Two optimizers, one of which holds nothing on the first rank."""
    net = flat(model(), use_orig_params=True)
    parameters = list(net.parameters())
    optimizers = [torch.optim.SGD(each, lr=0.01) for each in (parameters[:2], parameters[2:])]
    for _ in range(6):
        net.zero_grad()
        net(batch()).pow(2).mean().backward()
        for optimizer in optimizers:
            optimizer.step()


def sharded_scaler(clear=True, unscale=True, **options):
    """A scaler with methods of its own, which hand nothing on to torch's; and FSDP's own clip."""
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    net = flat(model(), **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = ShardedGradScaler(device="cpu", init_scale=8.0)
    for _ in range(5):
        if clear:
            optimizer.zero_grad()
        scaler.scale(net(batch()).pow(2).mean()).backward()
        if unscale:
            scaler.unscale_(optimizer)
        net.clip_grad_norm_(1.0)
        scaler.step(optimizer)
        scaler.update()


def tensor_parallel(clear=True):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    net = parallelize_module(model(), init_device_mesh("cpu", (2,)), plan)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, foreach=False)
    torch.manual_seed(1)  # the ranks see the same batches
    for _ in range(5):
        if clear:
            optimizer.zero_grad()
        net(batch()).pow(2).mean().backward()
        optimizer.step()


TRAININGS = {
    "ddp": ddp,
    "ddp without clear": lambda: ddp(clear=False),
    "bucket view": lambda: ddp(gradient_as_bucket_view=True),
    "bucket view without clear": lambda: ddp(clear=False, gradient_as_bucket_view=True),
    "unused parameters": lambda: ddp(find_unused_parameters=True),
    "no_sync": lambda: windows("right"),
    "no_sync, bucket view": lambda: windows("right", gradient_as_bucket_view=True),
    "every micro-batch": lambda: windows("always"),
    "backward outside": lambda: windows("outside"),
    "raw module": raw,
    "tensor parallel": tensor_parallel,
    "tensor parallel without clear": lambda: tensor_parallel(clear=False),
    "sharded scaler": sharded_scaler,
    "sharded scaler without clear": lambda: sharded_scaler(clear=False),
    "sharded scaler, not unscaled": lambda: sharded_scaler(unscale=False),
    "sharded scaler, original parameters": lambda: sharded_scaler(use_orig_params=True),
    "original parameters": original,
    "original parameters, no_sync": lambda: original(accumulate=K),
    "original parameters, two optimizers": halves,
    "original parameters without clear": lambda: original(clear=False),
    "original parameters, some frozen, without clear": lambda: original(clear=False, frozen=True),
    "original parameters, no_sync, without clear": lambda: original(clear=False, accumulate=K),
    "fsdp": fsdp,
    "fsdp without clear": lambda: fsdp(clear=False),
    "fsdp without sync": lambda: fsdp(sync=False),
}


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found = {}
    for name in sys.argv[1:]:
        torch.manual_seed(dist.get_rank())
        with watch(policy="collect", show_notes=True) as watching:
            TRAININGS[name]()
        found[name] = {
            "codes": [finding.rule.code for finding in watching.findings],
            "rank": [finding.to_json()["rank"] for finding in watching.findings],
            "messages": [finding.message for finding in watching.findings],
            "not checked": watching.not_checked,
        }
    dist.barrier()
    print(f"{os.environ['RANK']} {json.dumps(found)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
