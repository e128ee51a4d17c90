"""Step on several ranks with unequal data.

torchrun --nproc-per-node 2 examples/step_ddp.py
python examples/step_ddp.py            # one rank
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import zerograd


def main() -> None:
    is_distributed = "RANK" in os.environ
    rank = 0
    model: nn.Module = nn.Linear(4, 1)
    if is_distributed:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        model = DistributedDataParallel(model)
    generator = torch.Generator().manual_seed(rank)
    rows = 4 + 6 * rank
    target = torch.tensor([[1.0], [-2.0], [0.5], [3.0]])
    loader = []
    for _ in range(9):
        x = torch.randn(rows, 4, generator=generator)
        loader.append((x, x @ target))
    step = zerograd.Step(torch.optim.SGD(model.parameters(), lr=0.2), models=[model], clip=10.0)
    for _ in range(10):
        for window in zerograd.windows(loader, 4):
            with step(window):
                for x, y in window:
                    step.backward(nn.functional.mse_loss(model(x), y), weight=len(x))
    if rank == 0:
        error = nn.functional.mse_loss(model(loader[0][0]), loader[0][1]).item()
        print(f"error after 30 updates: {error:.5f}")
    if is_distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
