"""Where the ranks that a test starts find each other."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager


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


# What torch's threads say where they end a process that exits with a process group still held, as
# every network under DDP or FSDP holds one. Plain programs do that too, once in a great while.
ABORTED = "terminate called without an active exception"
TRIES = 3


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
