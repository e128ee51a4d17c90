"""The cost of other run-time checks beside ours: the same step, in the same run.

Each check has a process of its own (TrainCheck rewrites the script and patches torch for
good), and the processes take turns: plain, one check, plain, the next check, and so on.
Only one of them is awake at a time. The ratio is a check's block over the mean of the
plain blocks beside it; the control is the one plain block over the other.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Any

import zerograd
from benchmarks.pairs import interval

SCRIPT = Path(__file__).with_name("one_step.py")
TOOLS = {
    "zerograd": "zerograd",
    "anomaly mode": "anomaly",
    "torch-audit, every 1,000th step": "torch-audit",
    "torch-audit, every step": "torch-audit-each",
}
TRAINCHECK = "TrainCheck, selective mode"
_VERSIONS = """
import importlib.metadata as m, json, sys
found = {}
for name in ("torch", "torch-audit", "traincheck"):
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: pass
json.dump(found, sys.stdout)
"""


class Worker:
    """A process that runs so many steps when it is told to, and says what one took."""

    def __init__(self, python: str, script: Path, folder: Path, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [python, str(script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env=_environment(),
        )

    def block(self, count: int) -> float:
        """Return the process seconds of one step, over `count` of them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:  # tools speak on stdout too
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise RuntimeError(f"the process ended: exit code {self._process.wait()}")

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait()


def versions(python: str) -> dict[str, str]:
    """Return which of the checks that Python has, and their versions."""
    ended = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(ended.stdout)
    return found


def side_by_side(
    python: str, folder: Path, step: str, size: tuple[str, str], *, blocks: int, count: int
) -> list[dict[str, Any]]:
    """Return one row for each check that `python` has, on a step of that width and batch."""
    has = versions(python)
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    workers = {
        name: Worker(python, SCRIPT, folder, tool, *size)
        for name, tool in TOOLS.items()
        if not tool.startswith("torch-audit") or "torch-audit" in has
    }
    if "traincheck" in has:
        workers[TRAINCHECK] = Worker(python, _selective(python, folder), folder, "plain", *size)
    plain = Worker(python, SCRIPT, folder, "plain", *size)
    try:
        return _take_turns(step, plain, workers, blocks, count)
    finally:
        for worker in (plain, *workers.values()):
            worker.end()


def _take_turns(
    step: str, plain: Worker, workers: dict[str, Worker], blocks: int, count: int
) -> list[dict[str, Any]]:
    for worker in (plain, *workers.values()):
        worker.block(count)
    seen: dict[str, list[tuple[float, float, float]]] = {name: [] for name in workers}
    before = plain.block(count)
    for _ in range(blocks):
        for name, worker in workers.items():
            checked = worker.block(count)
            after = plain.block(count)
            seen[name].append((before, checked, after))
            before = after
    return [_row(f"{step}: {name}", turns, count) for name, turns in seen.items()]


def _row(name: str, turns: list[tuple[float, float, float]], count: int) -> dict[str, Any]:
    around = [(before + after) / 2 for before, _, after in turns]
    ratios = [turn[1] / base for turn, base in zip(turns, around, strict=True)]
    controls = [after / before for before, _, after in turns]
    row: dict[str, Any] = {
        "name": f"beside others, {name}",
        "steps": len(turns) * count,
        "ratio": _quartiles(ratios),
        "ratio_interval": interval(ratios),
        "control": _quartiles(controls),
        "control_interval": interval(controls),
        "extra_us": _quartiles(
            [(turn[1] - base) * 1e6 for turn, base in zip(turns, around, strict=True)]
        ),
        "step_us": statistics.median(around) * 1e6,
    }
    row["counts"] = abs(row["control"][1] - 1) <= 0.01
    print(
        f"{name:42} {row['ratio'][1]:.3f}x [{row['ratio'][0]:.3f}, {row['ratio'][2]:.3f}]  "
        f"A/A {row['control'][1]:.3f}  {row['extra_us'][1]:+.1f} us of {row['step_us']:.0f} us",
        flush=True,
    )
    return row


def _quartiles(values: list[float]) -> list[float]:
    return statistics.quantiles(values, n=4)


def _selective(python: str, folder: Path) -> Path:
    """Return the script as TrainCheck rewrites it to collect what its invariants need."""
    invariants = folder / "invariants.json"
    if not invariants.exists():
        _infer(python, folder, invariants)
    return _rewritten(python, folder, "selective", "-i", str(invariants))


def _infer(python: str, folder: Path, invariants: Path) -> None:
    """Trace twenty good steps in full and infer the invariants: minutes, once."""
    print("TrainCheck: a reference run and its invariants; this takes minutes ...", flush=True)
    reference = Worker(python, _rewritten(python, folder, "reference"), folder)
    reference.block(20)
    reference.end()
    traces = str(folder / "reference")
    _run([python, "-m", "traincheck.infer_engine", "-f", traces, "-o", str(invariants)], folder)


def _rewritten(python: str, folder: Path, name: str, *options: str) -> Path:
    output = folder / name
    shutil.rmtree(output, ignore_errors=True)
    script = folder / SCRIPT.name
    shutil.copy(SCRIPT, script)
    collect = [python, "-m", "traincheck.collect_trace", "-p", str(script), "--only-instr"]
    _run([*collect, "--models-to-track", "model", "--output-dir", str(output), *options], folder)
    return output / f"_traincheck_{SCRIPT.name}"


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(
        command,
        cwd=folder,
        env=_environment(),
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _environment() -> dict[str, str]:
    ours = str(Path(zerograd.__file__).parents[1])  # the rivals' environment need not have it
    return {**os.environ, "PYTHONPATH": ours, "OMP_NUM_THREADS": "1"}
