"""The examples run, and both witnesses have nothing to say about them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ranks_meet import ABORTED, TRIES

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("step_*.py"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def call(*words: str) -> subprocess.CompletedProcess[str]:
    for _ in range(TRIES):
        done = subprocess.run(
            [sys.executable, *words],
            capture_output=True, text=True, timeout=180, check=False, env=ENVIRONMENT,
        )  # fmt: skip
        if ABORTED not in done.stderr:
            break
    return done


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


def test_the_examples_are_silent_under_check():
    done = call("-m", "zerograd", "check", *map(str, EXAMPLES))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_is_silent_under_run(path):
    alone = call("-W", "ignore", str(path))
    assert alone.returncode == 0, alone.stdout + alone.stderr
    assert alone.stdout
    watched = call("-W", "ignore", "-m", "zerograd", "run", str(path))
    assert watched.returncode == 0, watched.stdout + watched.stderr
    assert alone.stdout in watched.stdout, "the numbers are the same"
    assert "ZG" not in watched.stdout + watched.stderr


def test_the_ranks_example_runs_on_two_ranks():
    path = next(path for path in EXAMPLES if path.stem == "step_ddp")
    done = call("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error after 30 updates" in done.stdout
