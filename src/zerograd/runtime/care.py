"""How closely to look: full care for what is new, a sample of what repeats itself.

Faults of loop order touch whole optimizers at once, so canaries see them. Scans
find the parameters whose history parts from their bucket's.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from torch import Tensor

from zerograd.runtime.buckets import Bucket, Partition
from zerograd.runtime.call_site import Site
from zerograd.runtime.marks import Scan

CAREFUL = 64  # backwards of one spot that are scanned each time
EVERY = 16  # of the later ones, this many pass between two scans
WHOLE = 3  # backwards of one spot at which every parameter is scanned
MOST_SCANNED = 64  # parameters in one later scan
MOST_WHOLE = 20_000  # parameters in one whole scan
MOST_SITES = 2048
NODES_A_ROUND = 64  # of a graph that is walked, at most, spread over the rounds so far


class Care:
    """Decides when to look closely, and learns from it which parameters go together."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._times: dict[tuple[Site, int], int] = {}
        self._sizes: dict[Site, int] = {}  # of the graphs that were walked
        self._turn = 0  # how far the rotation has come

    def count(self, site: Site, thread: int) -> int:
        """Count one more backward of this spot in this thread."""
        times = self._times.get((site, thread), 0) + 1
        if len(self._times) > MOST_SITES:
            self._times.clear()
        self._times[site, thread] = times
        return times

    @staticmethod
    def is_due(times: int) -> bool:
        """Is the backward that comes for the `times`-th time to be scanned?"""
        return times <= CAREFUL or times % EVERY == 0

    @staticmethod
    def is_note_due(times: int) -> bool:
        """Is it time to take note of how it is called?"""
        return times <= WHOLE or times & (times - 1) == 0

    def is_walk_due(self, site: Site, times: int) -> bool:
        """Is its graph to be walked for leaves that nobody has shown us?

        A large one is walked twice, for a leaf that comes again, and then no sooner than the
        rounds have paid for it.
        """
        if times <= WHOLE - 1:
            return True
        return self.is_note_due(times) and self._sizes.get(site, 0) <= NODES_A_ROUND * times

    def walked(self, site: Site, size: int) -> None:
        """Take note of how large a graph was."""
        if len(self._sizes) >= MOST_SITES:
            self._sizes.clear()
        self._sizes[site] = size

    def scan(self, times: int, buckets: tuple[Bucket, ...]) -> Scan | None:
        """Take down some parameters of these buckets before a backward."""
        if not any(len(bucket.members) > 1 for bucket in buckets):
            return None
        if times <= WHOLE:
            return Scan(_run(buckets, 0, MOST_WHOLE))
        start, self._turn = self._turn, self._turn + MOST_SCANNED
        if self._turn >= sum(len(bucket.members) for bucket in buckets):
            self._turn = 0
        return Scan(_run(buckets, start, MOST_SCANNED))

    def learn(self, scan: Scan, mask: int) -> int:
        """Split buckets whose members were not all filled alike; return the buckets filled."""
        apart: dict[tuple[Bucket, bool], list[weakref.ref[Tensor]]] = {}
        for member, parameter, was_filled in scan.apart(mask):
            bucket = self._partition.bucket_of(parameter)
            if bucket is not None and bool(bucket.bit & mask) is not was_filled:
                apart.setdefault((bucket, was_filled), []).append(member)
        for (bucket, was_filled), members in apart.items():
            part = self._partition.part(bucket, members)
            if part is not None and was_filled:
                mask |= part.bit
        return mask


def _run(
    buckets: Iterable[Bucket], start: int, most: int
) -> list[tuple[Bucket, list[weakref.ref[Tensor]]]]:
    """Return `most` members of all buckets, in their order, from the one at `start` on."""
    found = []
    for bucket in buckets:
        members = bucket.members[start : start + most]
        start = max(start - len(bucket.members), 0)
        if members:
            found.append((bucket, members))
            most -= len(members)
    return found
