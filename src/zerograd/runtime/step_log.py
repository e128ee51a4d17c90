"""When each rank stepped and cleared, small enough to compare between ranks.

Under data-parallel training every rank must update in the same windows. The log
holds one signature an update: how many backwards were synchronised since the
last one, whether the gradients were cleared, whether the update was skipped.
Equal neighbours are counted, so a run of a million steps is one entry.

Updates are compared by their number, so what comes after a part in which the ranks may rightly
differ is counted anew: each optimizer of a name has a life of its own, and one under `Join`, where
data is uneven on purpose, is not compared at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding, Live
from zerograd.rules.rank_desync import RULE
from zerograd.trace.format import spot_from_json, spot_to_json

MOST_ENTRIES = 2_048  # an owner's; what comes after is not compared
_STEPS = (EventKind.STEP, EventKind.STEP_SKIPPED)


@dataclass(slots=True)
class _Entry:
    """Some updates in a row that look alike."""

    synchronised: int
    cleared: bool
    skipped: bool
    spot: Spot
    iteration: int  # of the first of them
    count: int = 1

    @property
    def signature(self) -> tuple[int, bool, bool]:
        return (self.synchronised, self.cleared, self.skipped)

    def to_json(self) -> list[Any]:
        return [
            self.synchronised,
            self.cleared,
            self.skipped,
            spot_to_json(self.spot),
            self.iteration,
            self.count,
        ]

    @classmethod
    def from_json(cls, shape: Sequence[Any]) -> _Entry:
        synchronised, cleared, skipped, spot, iteration, count = shape
        return cls(synchronised, cleared, skipped, spot_from_json(spot), iteration, count)


class StepLog:
    """The updates of one process, by owner and by its lives; None is one that is not compared."""

    def __init__(self) -> None:
        self._lives: dict[str, list[list[_Entry] | None]] = {}
        self._sizes: dict[str, int] = {}  # entries of all lives
        self._synchronised: dict[str, int] = {}
        self._cleared: set[str] = set()
        self.is_uneven = False  # ranks may have less data than others, and know it

    def begin(self, owner: str) -> None:
        """Another optimizer is called `owner` from now on."""
        if self._lives.get(owner) and self._take(owner):
            self._lives[owner].append([])

    def feed(self, event: Event, iteration: int) -> None:
        if event.kind is EventKind.BACKWARD:
            if event.synchronised:
                for owner in event.fills or (event.owner,):
                    self._synchronised[owner] = self._synchronised.get(owner, 0) + 1
        elif event.kind is EventKind.CLEAR:
            self._cleared.add(event.owner)
        elif event.kind in _STEPS:
            self._step(event, iteration)

    def _step(self, event: Event, iteration: int) -> None:
        owner = event.owner
        lives = self._lives.setdefault(owner, [[]])
        entry = _Entry(
            self._synchronised.pop(owner, 0),
            owner in self._cleared,
            event.kind is EventKind.STEP_SKIPPED,
            event.spot,
            iteration,
        )
        self._cleared.discard(owner)
        if self.is_uneven:
            lives[-1] = None
        entries = lives[-1]
        if entries is None:
            return
        if entries and entries[-1].signature == entry.signature:
            entries[-1].count += 1
        elif self._take(owner):
            entries.append(entry)

    def _take(self, owner: str) -> bool:
        """Is there room for one more? What comes once there is none is not compared."""
        size = self._sizes[owner] = self._sizes.get(owner, 0) + 1
        if size == MOST_ENTRIES:
            self._lives[owner].append(None)
        return size < MOST_ENTRIES

    def to_json(self) -> dict[str, Any]:
        return {
            owner: [life and [entry.to_json() for entry in life] for life in lives]
            for owner, lives in self._lives.items()
        }


def compare(logs: Mapping[int, Mapping[str, Any]]) -> list[Finding]:
    """Return a finding for each owner that ranks step or clear in different windows.

    A rank that ends earlier than another is no fault: data may be uneven, and a
    run may be cut short. Owners whose backwards never synchronise train apart.
    """
    findings = []
    ranks = sorted(logs)
    owners = dict.fromkeys(owner for rank in ranks for owner in logs[rank])
    for owner in owners:
        lives = [logs[rank].get(owner, ()) for rank in ranks]
        for life in zip_longest(*lives, fillvalue=()):
            found = _compare_lives(owner, dict(zip(ranks, map(_entries, life), strict=True)))
            if found is not None:
                findings.append(found)
                break
    return findings


def _compare_lives(owner: str, mine: Mapping[int, Sequence[_Entry]]) -> Finding | None:
    together = [rank for rank in mine if any(entry.synchronised for entry in mine[rank])]
    for other in together[1:]:
        apart = _first_difference(mine[together[0]], mine[other])
        if apart is not None:
            return _tell(owner, together[0], other, *apart)
    return None


def _entries(shape: Sequence[Any] | None) -> list[_Entry]:
    return [_Entry.from_json(entry) for entry in shape or ()]


def _first_difference(
    one: Sequence[_Entry], other: Sequence[_Entry]
) -> tuple[int, _Entry, _Entry] | None:
    update = 0
    pairs = _side_by_side(one, other)
    for first, second, count in pairs:
        if first.signature != second.signature:
            return update, first, second
        update += count
    return None


def _side_by_side(
    one: Sequence[_Entry], other: Sequence[_Entry]
) -> Iterator[tuple[_Entry, _Entry, int]]:
    """Yield entries that stand for the same updates, and how many these are."""
    left, right = iter(one), iter(other)
    first, second = next(left, None), next(right, None)
    used_first = used_second = 0
    while first is not None and second is not None:
        count = min(first.count - used_first, second.count - used_second)
        yield first, second, count
        used_first, used_second = used_first + count, used_second + count
        if used_first == first.count:
            first, used_first = next(left, None), 0
        if used_second == second.count:
            second, used_second = next(right, None), 0


def _tell(owner: str, rank: int, other: int, update: int, first: _Entry, second: _Entry) -> Finding:
    number = update + 1  # as people count
    if first.synchronised != second.synchronised:
        fault = (
            f"before step {number} of {owner}, rank {rank} exchanges gradients {_times(first)} "
            f"and rank {other} {_times(second)}"
        )
        odd = max(first, second, key=lambda entry: entry.synchronised)
    elif first.cleared != second.cleared:
        clears, keeps = (rank, other) if first.cleared else (other, rank)
        fault = (
            f"rank {clears} clears the gradients of {owner} before step {number}, "
            f"rank {keeps} does not"
        )
        odd = second if first.cleared else first
    else:
        skips, steps = (rank, other) if first.skipped else (other, rank)
        fault = f"rank {skips} skips step {number} of {owner}, rank {steps} takes it"
        odd = first if first.skipped else second
    names = {
        "owner": owner,
        "fault": fault,
        "better": (
            f"let every rank step and clear {owner} in the same iterations; where a condition "
            "decides, agree on it first, for instance by an all_reduce of the flag"
        ),
    }
    return Finding(
        rule=RULE,
        spot=odd.spot,
        message=RULE.summary.format_map(names),
        advice=RULE.advice.format_map(names),
        owner=owner,
        # One of the two entries begins where they part; the other may have begun long before.
        live=Live(step=max(first.iteration, second.iteration), ranks=(rank, other)),
    )


def _times(entry: _Entry) -> str:
    often = {0: "not at all", 1: "once", 2: "twice"}
    return often.get(entry.synchronised, f"{entry.synchronised} times")
