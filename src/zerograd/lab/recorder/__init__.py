"""Runs every experiment of the lab in real PyTorch; the only part of it that imports torch.

An experiment is a function that returns plain numbers, lists and dicts. No number on
the page comes from anywhere else.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import torch

from zerograd import __version__
from zerograd.lab.recorder import buckets, loops, memory, myths, orders, replay, snippets

SEED = 0

EXPERIMENTS: dict[str, Callable[[], Any]] = {
    "bucket": buckets.bucket,
    "sum": buckets.running_sum,
    "replay": replay.replays,
    "three_steps": replay.three_steps,
    "grid": replay.grid,
    "placement": loops.placement,
    "lost": loops.lost,
    "subset": loops.subset,
    "overflow": loops.overflow,
    "poison": loops.poison,
    "windows": loops.windows,
    "optimizers": myths.optimizers_clear_nothing,
    "idle_head": myths.idle_head,
    "idle_weight": myths.idle_weight,
    "after_clearing": myths.after_clearing,
    "exchanges": myths.exchanges,
    "other_routes": myths.other_routes,
    "orders": orders.plain_orders,
    "scaler_orders": orders.scaler_orders,
    "memory": memory.peaks,
    "clear_cost": memory.clear_cost,
    "printed": snippets.printed,
}


def record(names: list[str] | None = None) -> dict[str, Any]:
    """Run the experiments and return what they gave, with version and seed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums then have one order, so numbers repeat
    try:
        results = {}
        for name in names or EXPERIMENTS:
            torch.manual_seed(SEED)
            results[name] = EXPERIMENTS[name]()
    finally:
        torch.set_num_threads(threads)
    return {
        "format": 1,
        "zerograd": __version__,
        "torch": torch.__version__.split("+")[0],
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, CPU, one thread",
        "seed": SEED,
        **results,
    }
