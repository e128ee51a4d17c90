"""Memory and trace over a million steps: what the witness keeps does not grow with the run.

    python -m benchmarks.million_steps --output benchmarks/results/million_steps.json

Each loop trains a tiny model under a watch that writes a trace, and is read at 10^3, 10^4,
10^5 and 10^6 steps: the resident memory of the process, the bytes of the trace, and the
numbers of what the witness remembers. A plain loop beside them is the control.
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
from pathlib import Path
from typing import Any

import torch
from torch import nn

import zerograd
from zerograd.trace.format import Header
from zerograd.trace.writer import TraceWriter

MARKS = (1_000, 10_000, 100_000, 1_000_000)
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


LOOPS = {"plain": plain, "uneven": uneven}


def resident() -> int:
    """Return the bytes of this process that are in memory now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, steps: int, *, watched: bool) -> list[dict[str, Any]]:
    """Return one row a mark."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    step = LOOPS[name](model, torch.optim.SGD(model.parameters(), lr=1e-6), torch.ones(1, 2))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        writer = watch = None
        if watched:
            writer = TraceWriter(path, Header(zerograd.__version__, time.time()))
            watch = zerograd.watch(policy="collect", trace=writer).start()
        start = time.process_time()
        for number in range(1, steps + 1):
            step(number)
            if number in MARKS:
                row: dict[str, Any] = {"steps": number, "resident_kb": resident() // 1024}
                row["cpu_s"] = round(time.process_time() - start, 1)
                if writer is not None and watch is not None:
                    writer.flush()
                    recorder = watch._recorder
                    assert recorder is not None
                    row |= {
                        "trace_bytes": path.stat().st_size,
                        "nodes": len(recorder.memo._nodes),
                        "edges": recorder.memo._edges,
                        "symbols": len(recorder.symbols),
                        "findings": len(watch.findings),
                    }
                rows.append(row)
                print(name, "watched" if watched else "alone", row, file=sys.stderr, flush=True)
        if watch is not None and writer is not None:
            watch.stop()
            writer.close(exit_code=0)
            assert not watch.not_checked, watch.not_checked
    return rows


def apart(name: str, steps: int, *, watched: bool) -> Any:
    """Measure in a process of its own, so that one run's memory is not another's."""
    words = [sys.executable, "-m", "benchmarks.million_steps", "--steps", str(steps)]
    words += ["--only", name, *(["--watched"] if watched else [])]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--steps", type=int, default=MARKS[-1])
    parser.add_argument("--only", choices=LOOPS, help=argparse.SUPPRESS)
    parser.add_argument("--watched", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.steps, watched=options.watched)))
        return
    result = {
        "machine": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cores": os.cpu_count(),
        },
        "loops": {
            name: {
                "alone": apart(name, options.steps, watched=False),
                "watched": apart(name, options.steps, watched=True),
            }
            for name in LOOPS
        },
    }
    if options.output is not None:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
