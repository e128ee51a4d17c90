"""Two gloo ranks run the solution; a hook counts what they exchange."""

# no `from __future__ import annotations` here: DDP reads the annotations of its hook
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from zerograd.learn.grading import Wrong, describe, load

WINDOW = 4
UPDATES = 3
_RANKS = 2


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))


def _data(rank: int) -> list[list[tuple[Tensor, Tensor]]]:
    generator = torch.Generator().manual_seed(7 + rank)

    def piece() -> tuple[Tensor, Tensor]:
        return torch.randn(5, 3, generator=generator), torch.randn(5, 1, generator=generator)

    return [[piece() for _ in range(WINDOW)] for _ in range(UPDATES)]


def _weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def _wanted() -> Tensor:
    """Train one process on the samples of both ranks, a window as one batch."""
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for windows in zip(*(_data(rank) for rank in range(_RANKS)), strict=True):
        pieces = [piece for window in windows for piece in window]
        inputs, targets = (torch.cat(part) for part in zip(*pieces, strict=True))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    return _weights(model)


Seen = tuple[int, Tensor, bool]  # all-reduces, final weights, is a gradient left?
_seen: dict[str, list[Seen]] = {}  # of a file: what each rank saw


def _rank(rank: int, folder: str, sources: Sequence[str]) -> None:
    """One of the two processes: train with each file, and leave what happened."""
    torch.set_num_threads(1)
    # the loopback address always exists; a host's own name may not resolve
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    store = dist.FileStore(f"{folder}/store", _RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=_RANKS)
    for number, source in enumerate(sources):
        try:
            seen = _train(rank, load(Path(source)).train_window)
        except Exception as error:
            Path(folder, "error").write_text(f"rank {rank}: {describe(error, source)}", "utf-8")
            raise
        torch.save(seen, f"{folder}/{number}-{rank}")
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # torch's threads may abort a process that takes the long way out


def _train(rank: int, train_window: Any) -> Seen:
    exchanges = 0

    def count(_: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
        nonlocal exchanges
        exchanges += 1
        summed = dist.all_reduce(bucket.buffer(), async_op=True)
        assert summed is not None
        averaged: torch.futures.Future[Tensor] = summed.get_future().then(
            lambda done: done.value()[0] / _RANKS
        )
        return averaged

    model = DistributedDataParallel(_model())
    model.register_comm_hook(None, count)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for window in _data(rank):
        train_window(model, optimizer, nn.functional.mse_loss, window)
    left = any(p.grad is not None and bool(p.grad.any()) for p in model.parameters())
    return exchanges, _weights(model), left


def run_on_ranks(*sources: str) -> None:
    """Train with each of these files on two ranks, started once for all of them."""
    from torch.multiprocessing import ProcessRaisedException, spawn

    with tempfile.TemporaryDirectory() as folder:
        try:
            spawn(_rank, args=(folder, sources), nprocs=_RANKS, join=True)
        except ProcessRaisedException:
            error = Path(folder, "error")
            if error.exists():
                raise Wrong(error.read_text("utf-8")) from None
            raise
        for number, source in enumerate(sources):
            _seen[source] = [torch.load(f"{folder}/{number}-{rank}") for rank in range(_RANKS)]


def _ranks(solution: Any) -> list[Seen]:
    source = str(Path(solution.__file__).resolve())
    if source not in _seen:
        run_on_ranks(source)
    return _seen[source]


def check_weights(solution: Any) -> None:
    """both ranks end with the weights of one process that saw all samples"""
    for rank, (_, weights, _) in enumerate(_ranks(solution)):
        if not torch.allclose(weights, _wanted(), atol=1e-5):
            off = (weights - _wanted()).norm() / (_wanted() - _weights(_model())).norm()
            raise Wrong(f"the weights of rank {rank} are off by {off:.0%} of the way.")


def check_replicas(solution: Any) -> None:
    """both ranks hold the same weights, bit for bit"""
    (_, first, _), (_, second, _) = _ranks(solution)
    if not torch.equal(first, second):
        raise Wrong("the ranks' weights differ: was an update made without an exchange?")


def check_exchanges(solution: Any) -> None:
    """there is one all-reduce per update, not one per micro-batch"""
    exchanges, _, _ = _ranks(solution)[0]
    if exchanges != UPDATES:
        raise Wrong(
            f"{UPDATES} updates of {WINDOW} micro-batches took {exchanges} all-reduces, "
            f"{UPDATES} are enough."
        )


def check_left(solution: Any) -> None:
    """no gradient is left when the call returns"""
    if any(left for _, _, left in _ranks(solution)):
        raise Wrong("p.grad is not empty after the update: who clears it?")
