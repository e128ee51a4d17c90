"""Several ranks, one report: who waits for whom, and how findings become one list.

Ranks on one machine meet in the run's folder; machines meet through the store
that torch's launcher keeps, each wait with a deadline. No collective is ever
issued and the user's process group is never touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from zerograd.lifecycle.findings import Finding, Live, in_order
from zerograd.runtime.run_folder import RunFolder, RunOptions, Shard, shard_name
from zerograd.runtime.step_log import compare
from zerograd.trace.format import finding_from_json

PRINTED = "printed"  # the claim of whoever writes the report
FAILS = "fails"  # and of the one that ends with 1 for all, after the others
LATE_START = 10.0  # seconds that a rank may start later than another ends
LOOKED_EVERY = 0.1
SPEAKS_WITHIN = 10.0
LEAVES_WITHIN = 10.0  # seconds that a process may take to end after its script
OTHER_NODES = 60.0  # seconds that a machine waits for the others before it ends
STORE_ANSWERS = 3.0


@dataclass(frozen=True, slots=True)
class Rank:
    """This process's place among the ranks, as its launcher told it."""

    rank: int
    world: int
    here: int  # how many ranks run on this machine
    node: int = 0
    nodes: int = 1

    @classmethod
    def from_environment(cls, env: Mapping[str, str] | None = None) -> Rank | None:
        """Return the place that torchrun or accelerate gave this process; None on its own."""
        env = os.environ if env is None else env
        try:
            rank, world = int(env["RANK"]), int(env["WORLD_SIZE"])
            here = int(env.get("LOCAL_WORLD_SIZE", world))
            nodes = int(env.get("GROUP_WORLD_SIZE", -(-world // max(1, here))))
            node = int(env.get("GROUP_RANK", rank // max(1, here)))
        except (KeyError, ValueError):
            return None
        return cls(rank, world, here, node, nodes) if world > 1 else None

    @property
    def name(self) -> str:
        return shard_name(0, self.rank)


def join_ranks(place: Rank, options: RunOptions) -> RunFolder:
    """Return the folder that all ranks of this start on this machine agree on.

    They agree without talking: on their launcher's pid and what it told all of
    them. A folder in which this rank has been before is of an earlier start.
    """
    told = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    words = [str(os.getppid()), str(place.world), *(os.environ.get(name, "") for name in told)]
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:16]
    user = os.getuid() if hasattr(os, "getuid") else 0
    for start in range(1_000):
        path = Path(tempfile.gettempdir()) / f"zerograd-ranks-{user}-{digest}-{start}"
        path.mkdir(mode=0o700, exist_ok=True)
        folder = RunFolder(path)
        if _is_mine(path) and folder.claim(f"taken-{place.rank}"):
            folder.write_options(options)
            return folder
    raise OSError(f"no free folder for this run in {tempfile.gettempdir()}")


def _is_mine(path: Path) -> bool:
    # A folder that somebody else put under this guessable name is not trusted.
    return not hasattr(os, "getuid") or (
        path.stat().st_uid == os.getuid() and not path.is_symlink()
    )


def merge(shards: Iterable[Shard], more: Sequence[Finding] = ()) -> list[Finding]:
    """Return the findings of all processes, each fault once, with the ranks that saw it."""
    shards = list(shards)
    found = [*more, *(finding_from_json(shape) for shard in shards for shape in shard.findings)]
    return in_order([*join_findings(found), *disagreements(shards)])


def join_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return each fault once: ranks and counts of those who saw it together."""
    same: dict[Any, list[Finding]] = defaultdict(list)
    for finding in findings:
        same[finding.key].append(finding)
    return in_order(_joined(each) for each in same.values())


def _joined(findings: Sequence[Finding]) -> Finding:
    first = max(findings, key=lambda each: len(each.trail))
    lives = [each.live for each in findings if each.live is not None]
    if not lives:
        return first
    steps = [live.step for live in lives if live.step is not None]
    shares = [live.share for live in lives if live.share is not None]
    live = Live(
        step=min(steps, default=None),
        ranks=tuple(sorted({rank for live in lives for rank in live.ranks})),
        parameters=tuple(dict.fromkeys(name for live in lives for name in live.parameters)),
        count=sum(live.count for live in lives),
        share=max(shares, default=None),
    )
    return replace(first, live=live)


def disagreements(shards: Iterable[Shard]) -> list[Finding]:
    """Return the faults that no rank sees alone, and none has therefore written down."""
    worlds: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for shard in shards:
        if shard.rank is not None and shard.world and shard.log:
            worlds[shard.world].setdefault(shard.rank, shard.log)
    return [finding for logs in worlds.values() for finding in compare(logs)]


def wait_for_late(folder: RunFolder, place: Rank) -> None:
    """Return when every rank of this machine has started, or takes too long.

    None that is at work is waited for: it may itself wait for what this process holds, and
    would hang where it ends with an error without us.
    """
    until = time.monotonic() + LATE_START
    while len(ranks_of(folder, place)) < place.here and time.monotonic() < until:
        time.sleep(LOOKED_EVERY)


def wait_until_gone(folder: RunFolder, place: Rank) -> None:
    """Return when the other ranks of this machine are gone, or take too long.

    Python ends a process by dropping what the script has left: open files are written
    out then, and a launcher that sees a failing exit before would cut that short.
    """
    until = time.monotonic() + LEAVES_WITHIN
    while time.monotonic() < until:
        if not any(shard.lives for shard in ranks_of(folder, place) if shard.name != place.name):
            return
        time.sleep(LOOKED_EVERY)


def wait_for_report(folder: RunFolder) -> None:
    """Return when the rank that writes the report has done so, or takes too long."""
    until = time.monotonic() + SPEAKS_WITHIN
    while folder.path.is_dir() and time.monotonic() < until:
        time.sleep(LOOKED_EVERY)


def is_last(folder: RunFolder, place: Rank) -> bool:
    """Has every other rank on this machine ended, one way or the other?"""
    ranks = ranks_of(folder, place)
    return len(ranks) >= place.here and not any_at_work(folder, place)


def any_at_work(folder: RunFolder, place: Rank) -> bool:
    """Is another rank on this machine still at work?"""
    others = (shard for shard in ranks_of(folder, place) if shard.name != place.name)
    return any(shard.is_at_work for shard in others)


def ranks_of(folder: RunFolder, place: Rank | None = None) -> list[Shard]:
    """Return the shards of the processes that were started as ranks."""
    mine = place.name if place is not None else ""
    return [shard for shard in folder.shards(mine=mine) if shard.name.startswith("process-rank-")]


class Nodes:
    """The machines of one run, through the store of torch's launcher."""

    def __init__(self, place: Rank) -> None:
        self._place = place
        self._store: Any = None

    def connect(self) -> bool:
        """Reach the launcher's store. False if there is none, or it does not answer."""
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            return False
        try:
            from torch.distributed import PrefixStore, TCPStore

            store = TCPStore(
                os.environ["MASTER_ADDR"],
                int(os.environ["MASTER_PORT"]),
                is_master=False,
                timeout=timedelta(seconds=STORE_ANSWERS),
                wait_for_workers=False,
            )
            restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            self._store = PrefixStore(f"zerograd/{restart}", store)
        except Exception:  # any trouble with the network: each machine speaks for itself
            return False
        return True

    def exchange(self, shards: Sequence[Shard]) -> list[Shard] | None:
        """Hand over what this machine saw; return what all saw, None where not all answered."""
        told = [_plain(shard) for shard in shards]
        try:
            self._store.set(f"node-{self._place.node}", json.dumps(told))
            names = [f"node-{node}" for node in range(self._place.nodes)]
            until = time.monotonic() + OTHER_NODES
            while not self._store.check(names):
                if time.monotonic() > until:
                    return None
                time.sleep(LOOKED_EVERY)
            return [
                Shard(**shape)
                for name in names
                for shape in json.loads(bytes(self._store.get(name)).decode("utf-8"))
            ]
        except Exception:
            return None

    def say_told(self) -> None:
        """Let the other machines know that the report has been written."""
        try:
            self._store.set("told", "1")
        except Exception:
            pass  # they wait for a while and end

    def wait_until_told(self) -> None:
        """Return when the first machine has written the report, or takes too long.

        A machine that failed earlier would make the launcher kill the one that speaks.
        """
        until = time.monotonic() + SPEAKS_WITHIN
        try:
            while not self._store.check(["told"]) and time.monotonic() < until:
                time.sleep(LOOKED_EVERY)
        except Exception:
            pass  # the launcher's store is gone, and so is the first machine


def _plain(shard: Shard) -> dict[str, Any]:
    return {
        "pid": shard.pid,
        "rank": shard.rank,
        "world": shard.world,
        "done": shard.done,
        "exit": shard.exit,
        "steps": shard.steps,
        "findings": shard.findings,
        "log": shard.log,
        "notes": shard.notes,
        "name": shard.name,
    }
