"""What watching costs: interleaved blocks on the CPU, one thread, process time.

    python -m benchmarks.watch_overhead --output benchmarks/results/watch_overhead.json

How it is measured: see `pairs.py`. With `--rivals PYTHON`, a Python that has torch-audit and
TrainCheck, these are measured beside it, in the same run (`watch_rivals.py`).
At the end each row with a limit is held against it; a row that breaks its limit fails the run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

import zerograd
from benchmarks.pairs import Plan, Step, measure, pin, verdict
from benchmarks.watch_rivals import side_by_side, versions
from zerograd.trace.format import Header
from zerograd.trace.writer import TraceWriter


def mlp(width: int = 64, layers: int = 3, batch: int = 16) -> Step:
    """A host-bound step of about 0.2 ms."""
    torch.manual_seed(0)
    sizes = [32, *[width] * (layers - 1), 1]
    parts = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*parts[:-1])
    return _loop(model, torch.randn(batch, 32))


def large() -> Step:
    """A step of 10 ms and more."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.Linear(1024, 1)
    )
    return _loop(model, torch.randn(256, 512))


def many(parameters: int) -> Step:
    """A model of so many small parameters."""
    torch.manual_seed(0)
    weights = nn.ParameterList(torch.randn(4) for _ in range(parameters))
    optimizer = torch.optim.SGD(weights.parameters(), lr=1e-3, foreach=True)
    x = torch.randn(4)

    def step() -> None:
        optimizer.zero_grad()
        torch.stack([weight * x for weight in weights]).pow(2).mean().backward()
        optimizer.step()

    return step


def _loop(model: nn.Module, x: torch.Tensor) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


def trace() -> TraceWriter:
    path = Path(tempfile.mkdtemp()) / "trace.jsonl"
    return TraceWriter(path, Header(zerograd.__version__, time.time()))


def memory(steps: int) -> list[dict[str, int]]:
    """Return the peak memory of the process and what the witness keeps, over very many steps."""
    import resource

    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.ones(1, 2)
    curve = []
    with zerograd.watch(policy="collect") as watching:
        for n in range(1, steps + 1):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            if n & (n - 1) == 0 or n == steps:
                recorder = watching._recorder
                assert recorder is not None
                curve.append(
                    {
                        "step": n,
                        "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                        "edges": recorder.memo._edges,
                        "symbols": len(recorder.symbols),
                    }
                )
    print(f"memory: {curve[0]} ... {curve[-1]}", flush=True)
    return curve


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="fewer blocks, for a first look")
    parser.add_argument("--alone", action="store_true", help="nothing else beside it")
    parser.add_argument("--million", action="store_true", help="also show memory over 10^6 steps")
    parser.add_argument(
        "--rivals", default=sys.executable, help="a Python that has torch-audit and traincheck"
    )
    parser.add_argument(
        "--rivals-folder",
        type=Path,
        default=Path(".scratch/rivals/watch"),
        help="where TrainCheck's invariants are, or are put",
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    pin()
    share = 4 if options.quick else 1

    def row(name: str, step: Step, rounds: int, *numbers: int, **others: Any) -> dict[str, Any]:
        count, dropped, first, over = numbers
        plan = Plan(max(rounds // share, 8), count, dropped, first, over, others.pop("limit", None))
        return measure(name, step, plan, **others)

    # A block takes some 20 to 100 ms, or a few steps; the columns: rounds, steps of a block,
    # steps dropped before it, first turns, steps over which these are spread.
    rows = [
        row("tiny MLP", mlp(), 160, 64, 64, 128, 10_000, limit=1.03),
        row("tiny MLP, trace", mlp(), 80, 256, 64, 1_100, 10_000, limit=1.10, trace=trace()),
        row("10 ms step", large(), 120, 3, 1, 40, 1_000, limit=1.01),
        row("10 parameters", many(10), 160, 64, 64, 128, 10_000, limit=1.03),
        row("100 parameters", many(100), 140, 24, 8, 64, 1_000),
        row("1,000 parameters", many(1_000), 140, 3, 1, 40, 1_000, limit=1.01),
        row("10,000 parameters", many(10_000), 100, 1, 1, 20, 1_000, limit=1.01),
    ]
    beside = (os.path.abspath(options.rivals), options.rivals_folder)  # a link stays a link
    if not options.alone:
        rows += side_by_side(*beside, "tiny MLP", ("64", "16"), blocks=80 // share, count=120)
        rows += side_by_side(*beside, "10 ms step", ("1024", "256"), blocks=24 // share, count=10)
    result: dict[str, Any] = {
        "machine": machine(),
        "beside": versions(options.rivals),
        "rows": rows,
    }
    if options.million:
        result["memory"] = memory(1_000_000)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    kept = [verdict(row) for row in rows if row.get("limit")]
    if not all(kept):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
