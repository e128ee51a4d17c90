"""Traces for the tests of reports: made by the real writer, judged by the real rules."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Live
from zerograd.lifecycle.judge import Judge
from zerograd.rules import ALL_RULES
from zerograd.trace.format import Header, is_kept
from zerograd.trace.writer import TraceWriter

K = EventKind
Happening = tuple[Event, dict[str, Any] | None]

SCRIPT = """import torch

net = torch.nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [torch.randn(4, 8) for _ in range(100)]
for step, batch in enumerate(data):
    loss = net(batch).pow(2).mean()
    loss.backward()
    if step % 4 == 3:
        opt.step()
        if step < 8:
            opt.zero_grad()
"""


def event(
    kind: EventKind, line: int, owner: str = "opt", path: str = "train.py", **more: Any
) -> Event:
    texts = {
        K.BACKWARD: "loss.backward()",
        K.STEP: f"{owner}.step()",
        K.CLEAR: f"{owner}.zero_grad()",
    }
    return Event(kind, owner, Spot(path, line), text=texts.get(kind, ""), **more)


_FOLDED: Happening = (event(K.STEP, 10), None)


def forgetful(iteration: int, path: str) -> Iterator[Happening]:
    """Windows of four; after the second the clear is gone."""
    loss = 2.0 * math.exp(-iteration / 30) + 0.1 * math.sin(iteration)
    yield event(K.BACKWARD, 8, path=path, fills=frozenset({"opt"})), {"loss": loss}
    if iteration % 4 == 3:
        yield event(K.STEP, 10, path=path), {"grad_norm": 1.0 + iteration / 40}
        if iteration < 8:
            yield event(K.CLEAR, 12, path=path), None


def right(iteration: int, path: str) -> Iterator[Happening]:
    yield event(K.CLEAR, 7, path=path), None
    yield event(K.BACKWARD, 8, path=path, fills=frozenset({"opt"})), {"loss": 1 / (1 + iteration)}
    yield event(K.STEP, 10, path=path), None


def long_run(iteration: int, path: str) -> Iterator[Happening]:
    """Like `right`, but what will be folded anyway is not all made: a million steps in seconds."""
    if is_kept(iteration):
        yield from right(iteration, path)
    else:
        yield _FOLDED


def gan(iteration: int, path: str) -> Iterator[Happening]:
    """The generator's loss fills the discriminator's bucket, and nobody clears that."""
    both = frozenset({"opt_g", "opt_d"})
    yield event(K.CLEAR, 5, "opt_g", path), None
    yield event(K.BACKWARD, 6, "opt_g", path, buckets=("opt_g", "opt_d"), fills=both), {"loss": 1.0}
    yield event(K.CLIP, 7, "opt_g", path), None
    yield event(K.STEP, 8, "opt_g", path), None
    yield event(K.BACKWARD, 9, "opt_d", path, fills=frozenset({"opt_d"})), None
    yield event(K.STEP, 10, "opt_d", path), None
    yield event(K.CLEAR, 11, "opt_d", path), None


def lossy(iteration: int, path: str) -> Iterator[Happening]:
    yield event(K.BACKWARD, 8, path=path, fills=frozenset({"opt"})), None
    yield event(K.CLEAR, 9, path=path), None
    yield event(K.STEP, 10, path=path), None


def record(
    path: Path,
    steps: int,
    loop: Callable[[int, str], Iterator[Happening]] = forgetful,
    *,
    script: str = "train.py",
    rank: int | None = None,
    world: int | None = None,
    parameters: Sequence[str] = ("net.weight", "net.bias"),
    ended: bool = True,
    notes: Sequence[str] = (),
    exit_code: int = 0,
) -> Path:
    """Write the trace of a loop, with the findings that the rules make of it."""
    header = Header(
        "0.1.0", time.time(), (script, "--epochs", "3"), "3.11.7", "2.13.0", pid=4000 + (rank or 0),
        rank=rank, world=world,
    )  # fmt: skip
    writer = TraceWriter(path, header)
    holdings = {"opt_g": ("opt_g",), "opt_d": ("opt_d",)} if loop is gan else {}
    court, seen = Judge(ALL_RULES, holdings), set()
    for note in notes:
        writer.note(note)
    for iteration in range(steps):
        for happened, extra in loop(iteration, script):
            writer.write(happened, iteration=iteration, extra=extra)
            for finding in court.feed(happened) if iteration < 60 else ():
                if finding.key not in seen:
                    seen.add(finding.key)
                    ranks = () if rank is None else (rank,)
                    live = Live(iteration, ranks, tuple(parameters), 12, 0.43)
                    writer.finding(replace(finding, live=live), iteration=iteration)
    writer.close(exit_code=exit_code)
    if not ended:
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-1]))
    return path
