"""How the tests of runs start them: real processes, one thread each, with a deadline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from tests.ranks_meet import ABORTED, TRIES

RUN = [sys.executable, "-m", "zerograd", "run"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
DEADLINE = 180  # seconds; a hang is a failure, not a wait

TRAIN = """
import torch
def train(rounds=4, clear=False):
    net = torch.nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(rounds):
        net(torch.ones(2, 4)).sum().backward()
        opt.step()
        if clear:
            opt.zero_grad()
"""


def environment(**more: str) -> dict[str, str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", **more}
    for name in ("RANK", "WORLD_SIZE", "PYTHONPATH", "ZEROGRAD"):
        if name not in more:
            env.pop(name, None)
    return env


def write(folder: Path, **scripts: str) -> None:
    for name, text in {"faulty": TRAIN, **scripts}.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))


def call(
    *words: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; once more where torch aborts a process by itself."""
    for _ in range(TRIES):
        done = subprocess.run(
            words,
            cwd=cwd,
            env=env or environment(),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        if ABORTED not in done.stderr:
            break
    return done


def run_json(
    cwd: Path, *words: str, launcher: tuple[str, ...] | None = None, code: int = 1, **more: str
) -> list[dict[str, Any]]:
    """Run a script under `zerograd run` and return its findings."""
    out = cwd / "findings.json"
    start = RUN if launcher is None else [*launcher, "-m", "zerograd", "run"]
    done = call(*start, "--format", "json", "--output", str(out), *words, cwd=cwd,
                env=environment(**more))  # fmt: skip
    assert done.returncode == code, done.stderr
    return json.loads(out.read_text())
