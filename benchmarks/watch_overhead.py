"""What watching costs: interleaved pairs on the CPU, one thread, process time.

    python -m benchmarks.watch_overhead --output benchmarks/results/watch_overhead.json

With `--rivals PYTHON`, a Python that has torch-audit and TrainCheck, these are measured
beside it, in the same run (`watch_rivals.py`).

Each row alternates blocks of the plain loop (A), the watched loop (B) and the plain
loop again (C). The ratio is B over the mean of its neighbours; C over A is the control,
and a row counts only if the control's median lies within 1 %. What the first turns cost
more than the later ones is added and spread over the steps of the row: "amortised". Each
block begins with the garbage collected, so that a collection falls into all of them alike.
At the end each row with a limit is held against it; a row that breaks its limit fails the run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

import zerograd
from benchmarks.watch_rivals import side_by_side, versions
from zerograd.trace.format import Header
from zerograd.trace.writer import TraceWriter

Step = Callable[[], None]
CAREFUL = 128  # steps within which all that only the first turns cost has been paid


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


class Watched:
    """A watch that goes on where it stopped, so that ten thousand steps may come in blocks."""

    def __init__(self, *, trace: bool = False) -> None:
        self._writer: TraceWriter | None = None
        if trace:
            folder = tempfile.mkdtemp()
            self._writer = TraceWriter(
                Path(folder) / "trace.jsonl", Header(zerograd.__version__, time.time())
            )
        self.watch = zerograd.watch(policy="collect", trace=self._writer)
        self.first: float | None = None  # seconds of the first step of all

    @contextmanager
    def __call__(self, step: Step) -> Iterator[None]:
        self.watch.start()  # once a process, about 30 ms: not a cost of steps
        start = time.process_time()
        try:
            step()  # torch builds its disabled wrappers at the first call
            if self.first is None:
                self.first = time.process_time() - start
            yield
        finally:
            self.watch.stop()
            step()


def block(step: Step, count: int) -> float:
    """Return the process seconds of one step."""
    gc.collect()
    start = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - start) / count


def compare(
    name: str, step: Step, watched: Any, *, blocks: int, count: int, limit: float | None = None
) -> dict[str, Any]:
    """Return the quartiles of ratio, control and microseconds of one row."""
    block(step, max(count // 4, 3))
    ratios, controls, extra, plain = [], [], [], []
    for _ in range(blocks):
        a = block(step, count)
        with watched(step):
            b = block(step, count)
        c = block(step, count)
        around = (a + c) / 2
        ratios.append(b / around)
        controls.append(c / a)
        extra.append((b - around) * 1e6)
        plain.append(around * 1e6)
    row: dict[str, Any] = {
        "name": name,
        "steps": blocks * count,
        "ratio": statistics.quantiles(ratios, n=4),
        "control": statistics.quantiles(controls, n=4),
        "extra_us": statistics.quantiles(extra, n=4),
        "step_us": statistics.median(plain),
    }
    row["counts"] = abs(row["control"][1] - 1) <= 0.01
    # What the first blocks cost more than the rest, and the step before the first of them.
    early = extra[: -(-CAREFUL // count)]
    more = sum((each - row["extra_us"][1]) * count for each in early)
    first = getattr(watched, "first", None)
    more += first * 1e6 - row["step_us"] if first is not None else 0.0
    row["first_turns_ms"] = more / 1e3
    row["amortised"] = row["ratio"][1] + max(more, 0.0) / (row["steps"] * row["step_us"])
    row["limit"] = limit
    if isinstance(watched, Watched):
        row["metrics"] = watched.watch.metrics()
    print(
        f"{name:28} {row['ratio'][1]:.3f}x [{row['ratio'][0]:.3f}, {row['ratio'][2]:.3f}]  "
        f"A/A {row['control'][1]:.3f}  {row['extra_us'][1]:+.1f} us of {row['step_us']:.0f} us  "
        f"amortised {row['amortised']:.3f}x"
        f"{'' if row['counts'] else '  (control off by more than 1 %: does not count)'}",
        flush=True,
    )
    return row


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
    scale = 1 if options.quick else 4
    rows = [
        compare("tiny MLP", mlp(), Watched(), blocks=5 * scale, count=500, limit=1.03),
        compare(
            "tiny MLP, trace", mlp(), Watched(trace=True), blocks=5 * scale, count=500, limit=1.10
        ),
        compare("10 ms step", large(), Watched(), blocks=10 * scale, count=15, limit=1.01),
    ]
    # Many short blocks: what else the machine does falls into neighbours alike.
    for parameters, blocks, count, limit in (
        (10, 5 * scale, 500, 1.03),
        (100, 10 * scale, 100, None),
        (1_000, 10 * scale, 25, 1.01),
        (10_000, 10 * scale, 3, 1.01),
    ):
        row = compare(
            f"{parameters:,} parameters",
            many(parameters),
            Watched(),
            blocks=blocks,
            count=count,
            limit=limit,
        )
        rows.append(row)
    beside = (os.path.abspath(options.rivals), options.rivals_folder)  # a link stays a link
    if not options.alone:
        rows += side_by_side(*beside, "tiny MLP", ("64", "16"), blocks=5 * scale, count=500)
        rows += side_by_side(*beside, "10 ms step", ("1024", "256"), blocks=3 * scale, count=20)
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


def verdict(row: dict[str, Any]) -> bool:
    """Print whether a row keeps its limit; True also where its control was off."""
    amortised, limit = row["amortised"], row["limit"]
    if not row["counts"]:
        word = "NOT MEASURED"
    else:
        word = "met" if amortised <= limit else "BROKEN"
    print(f"{word:12} {row['name']}: {amortised:.3f}x over {row['steps']:,} steps, limit {limit}x")
    return word != "BROKEN"


if __name__ == "__main__":
    main()
