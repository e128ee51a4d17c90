"""Ranks that a test starts: where they find each other, and what they say."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def meeting() -> Iterator[dict[str, str]]:
    """Keep a store for the ranks of one run; yield the environment that leads to it.

    A port that is looked for, let go and bound again by rank 0 may be another's by then,
    and rank 0's store goes with rank 0, which may be done before the others have asked.
    """
    from torch.distributed import TCPStore

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    yield {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    del store


# What torch's threads say where they end a process that exits after it had a process group. Plain
# programs on busy cores do so more often than watched ones: of 232 ranks each, 30 against none.
ABORTED = "terminate called without an active exception"
TRIES = 3


def said_by_ranks(command: list[str], ranks: int, *, deadline: float) -> list[str]:
    """Run the command as the ranks of one distributed run; return what each wrote to stdout.

    A rank flushes what it says before it exits, so an abort of torch's then takes nothing away.
    """
    said = []
    with meeting() as where:
        processes = [
            subprocess.Popen(
                command,
                cwd=ROOT,
                env={
                    **os.environ,
                    **where,
                    "RANK": str(rank),
                    "LOCAL_RANK": str(rank),
                    "WORLD_SIZE": str(ranks),
                    "OMP_NUM_THREADS": "1",
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        try:
            for process in processes:
                out, errors = process.communicate(timeout=deadline)
                assert process.returncode == 0 or ABORTED in errors, errors
                said.append(out)
        finally:
            for process in processes:
                process.kill()  # of a rank that waits for one that failed
                process.communicate()
    return said


def free_port() -> int:
    """For a launcher that binds it itself: below what the system hands to any who connect."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port of a hundred is free")
