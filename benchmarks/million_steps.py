"""Memory and trace over a million steps: what the witness keeps does not grow with the run.

    python -m benchmarks.million_steps --output benchmarks/results/million_steps.json

Each loop trains a tiny model alone, under a watch, and under a watch that writes a trace, and
is read at 10^3, 10^4, … steps and three times as many: the resident memory of the process, the
bytes of the trace, and the numbers of what the witness remembers. Beside the loop that is right
for ever stand one whose fault comes in every step, one whose rounds are never alike, one that
runs ever new code and one that trains ever new models; the last two, where a step costs more,
for 10^5 steps. Each is measured in a process of its own, two at a time; rows that are there
already are kept, so that a run that was interrupted goes on. It ends with one line a loop, and
fails if memory grew by more than 1 % over the last factor of three.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import nn

import zerograd
from zerograd.trace.format import Header
from zerograd.trace.writer import TraceWriter

MARKS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MOST_GROWTH = 1.01  # over the last factor of three
Step = Callable[[int], None]


def plain(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> Step:
    """Clear, backward, step: the same round for ever."""

    def step(number: int) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    return step


def uneven(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> Step:
    """Windows whose size never settles, so that no round is like the one before."""

    def step(number: int) -> None:
        (model(x).sum() / 3).backward()
        if (number * 2_654_435_761 >> 7) % 5 == 0:
            optimizer.step()
            optimizer.zero_grad()

    return step


def faulty(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> Step:
    """Nothing is ever cleared: the same finding in each step."""

    def step(number: int) -> None:
        model(x).sum().backward()
        optimizer.step()

    return step


NEW_EVERY = 10  # steps
NEW_CODE_EVERY = 3
CODE = """
def step(number):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


def new_code(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> Step:
    """A program that writes its own code: other lines of other files every three steps."""
    space: dict[str, Any] = {"model": model, "optimizer": optimizer, "x": x}

    def step(number: int) -> None:
        if number % NEW_CODE_EVERY == 1:
            exec(compile(CODE, f"made/step_{number}.py", "exec"), space)
        space["step"](number)

    return step


def new_models(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> Step:
    """A search that trains a new model with a new optimizer every ten steps."""
    now = plain(model, optimizer, x)

    def step(number: int) -> None:
        nonlocal now
        if number % NEW_EVERY == 1:
            model = nn.Linear(2, 1)
            now = plain(model, torch.optim.SGD(model.parameters(), lr=1e-6), x)
        now(number)

    return step


LOOPS = {
    "plain": (plain, 1_000_000),
    "faulty": (faulty, 1_000_000),
    "new code": (new_code, 100_000),
    "new models": (new_models, 100_000),
    "uneven": (uneven, 1_000_000),
}
ALONE, WATCHED, TRACED = HOW = ("alone", "watched", "traced")
MOST_ALONE = 100_000  # steps without the witness, but for the plain loop: nothing is there to grow


def resident() -> int:
    """Return the bytes of this process that are in memory now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, how: str) -> list[dict[str, Any]]:
    """Return one row a mark."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    make, steps = LOOPS[name]
    if how == ALONE and name != "plain":
        steps = min(steps, MOST_ALONE)
    step = make(model, torch.optim.SGD(model.parameters(), lr=1e-6), torch.ones(1, 2))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        writer = watch = None
        if how == TRACED:
            writer = TraceWriter(path, Header(zerograd.__version__, time.time()))
        if how != ALONE:
            watch = zerograd.watch(policy="collect", trace=writer).start()
        start = time.process_time()
        for number in range(1, steps + 1):
            step(number)
            if number in MARKS:
                row: dict[str, Any] = {"steps": number, "resident_kb": resident() // 1024}
                row["cpu_s"] = round(time.process_time() - start, 1)
                if watch is not None:
                    recorder = watch._recorder
                    assert recorder is not None
                    row |= {
                        "nodes": len(recorder.memo._nodes),
                        "edges": recorder.memo._edges,
                        "symbols": len(recorder.symbols),
                        "sites": len(recorder.sites._known),
                        "buckets": len(recorder.partition.buckets),
                        "findings": len(watch.findings),
                    }
                if writer is not None:
                    writer.flush()
                    row["trace_bytes"] = path.stat().st_size
                rows.append(row)
                print(name, how, row, file=sys.stderr, flush=True)
        if watch is not None:
            watch.stop()
            assert not watch.not_checked, watch.not_checked
        if writer is not None:
            writer.close(exit_code=0)
    return rows


def apart(name: str, how: str) -> Any:
    """Measure in a process of its own, so that one run's memory is not another's."""
    words = [sys.executable, "-m", "benchmarks.million_steps", "--only", name, "--how", how]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--anew", action="store_true", help="measure again what is there already")
    parser.add_argument("--only", choices=LOOPS, help=argparse.SUPPRESS)
    parser.add_argument("--how", choices=HOW, default=TRACED, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.how)))
        return
    loops: dict[str, dict[str, Any]] = {}
    if options.output is None:
        parser.error("--output is missing")
    if options.output.exists() and not options.anew:
        loops = json.loads(options.output.read_text(encoding="utf-8"))["loops"]
    machine = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
    }
    due = [(n, how) for n in LOOPS for how in HOW if how not in loops.get(n, {})]
    with ThreadPoolExecutor(options.jobs) as pool:
        for (name, how), rows in zip(due, pool.map(lambda each: apart(*each), due), strict=True):
            loops.setdefault(name, {})[how] = rows
            result = json.dumps({"machine": machine, "loops": loops}, indent=1)
            options.output.write_text(result + "\n", encoding="utf-8")
    verdicts = [is_bounded(name, how, loops[name][how]) for name in LOOPS for how in HOW]
    if not all(verdicts):
        raise SystemExit(1)


def is_bounded(name: str, how: str, rows: list[dict[str, Any]]) -> bool:
    """Say whether memory has stopped growing, and print by how much it grew."""
    memory: dict[int, float] = {row["steps"]: row["resident_kb"] / 1024 for row in rows}
    last = max(memory)
    growth = memory[last] / memory[last * 3 // 10]
    curve = "  ".join(f"{steps:,}: {megabytes:.0f}" for steps, megabytes in memory.items())
    verdict = "bounded" if growth <= MOST_GROWTH else "GROWS"
    print(f"{verdict:8} {name}, {how}: {growth:.3f}x at last; MB at steps {curve}", flush=True)
    return growth <= MOST_GROWTH


if __name__ == "__main__":
    main()
