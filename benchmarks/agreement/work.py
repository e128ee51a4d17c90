"""What one process does: it makes itself ready, then compares programs."""

from __future__ import annotations

import gc

import torch

from benchmarks.agreement.compare import compare
from benchmarks.agreement.generate import generate
from benchmarks.agreement.live import provide, run, surroundings
from benchmarks.agreement.report import Tally


def prepare() -> None:
    """Make this process ready: one thread, and the imports out of the collector's sight.

    A live finding names parameters by looking through all objects there are; those of torch
    itself need not be looked at for each of thousands of runs.
    """
    torch.set_num_threads(1)
    provide()
    text = generate(0).text
    run(text, "warm_up.py", next(surroundings(text)))
    gc.collect()
    gc.freeze()


def tally(seeds: range, *, daily: bool = False) -> Tally:
    """Compare the programs of these seeds."""
    result = Tally()
    for seed in seeds:
        program = generate(seed, daily=daily)
        result.take(program, compare(program.text))
    return result
