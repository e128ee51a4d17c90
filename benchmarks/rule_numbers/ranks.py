"""The figures of the rule pages that need two ranks: all-reduces, and how far ranks drift."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel


def _rank(rank: int, folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)

    def start() -> tuple[DistributedDataParallel, torch.optim.Optimizer, list[int]]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        wrapped = DistributedDataParallel(model)
        calls = [0]

        def count(state, bucket):  # type: ignore[no-untyped-def]
            state[0] += 1
            done = dist.all_reduce(bucket.buffer().div_(2), async_op=True).get_future()
            return done.then(lambda future: future.value()[0])

        wrapped.register_comm_hook(calls, count)
        return wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.1), calls

    torch.manual_seed(rank)
    data = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(40)]

    def reduces(skip: bool) -> float:
        model, optimizer, calls = start()
        for number, (x, y) in enumerate(data):
            last = number % 4 == 3
            if skip and not last:
                with model.no_sync():
                    (mse_loss(model(x), y) / 4).backward()
            else:
                (mse_loss(model(x), y) / 4).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
        return calls[0] / 10

    def apart(how: str) -> float:
        model, optimizer, _ = start()
        for x, y in data[:10]:
            optimizer.zero_grad()
            if how == "no_sync around the forward only":
                with model.no_sync():
                    loss = mse_loss(model(x), y)
                loss.backward()
            elif how == "raw module":
                mse_loss(model.module(x), y).backward()
            else:
                mse_loss(model(x), y).backward()
            optimizer.step()
        return distance(model)

    def apart_in_windows(inside: tuple[int, ...]) -> float:
        """Ten updates of two micro-batches each, of which those `inside` are in no_sync."""
        model, optimizer, _ = start()
        for number, (x, y) in enumerate(data[:20]):
            with model.no_sync() if number % 2 in inside else nullcontext():
                (mse_loss(model(x), y) / 2).backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()
        return distance(model)

    def distance(model: nn.Module) -> float:
        mine = torch.cat([p.detach().flatten() for p in model.parameters()])
        both = [torch.zeros_like(mine) for _ in range(2)]
        dist.all_gather(both, mine)
        return float((both[0] - both[1]).norm() / both[0].norm())

    found = {
        "all": reduces(False),
        "skip": reduces(True),
        "right": apart(""),
        "no_sync": apart("no_sync around the forward only"),
        "raw": apart("raw module"),
        "right window": apart_in_windows((0,)),
        "inverted": apart_in_windows((1,)),
        "always": apart_in_windows((0, 1)),
    }
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        Path(folder, "found.json").write_text(json.dumps(found))


def ranks() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, args=(folder,), nprocs=2)
        found: dict[str, float] = json.loads(Path(folder, "found.json").read_text())
    return found
