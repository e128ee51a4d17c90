"""How closely to look: full care for what is new, a sample of what repeats itself.

Faults of loop order touch whole optimizers at once, so canaries see them. Scans
find the parameters whose history parts from their bucket's.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from itertools import islice

from torch import Tensor

from zerograd.runtime.buckets import Bucket, Partition, Scan
from zerograd.runtime.call_site import Site

CAREFUL = 64  # backwards of one spot that are scanned each time
EVERY = 16  # of the later ones, this many pass between two scans
WHOLE = 3  # backwards of one spot at which every parameter is scanned
MOST_SCANNED = 64  # parameters in one later scan
MOST_WHOLE = 20_000  # parameters in one whole scan
MOST_SITES = 4096


class Care:
    """Decides when to look closely, and learns from it which parameters go together."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._times: dict[tuple[Site, int], int] = {}
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
    def is_walk_due(times: int) -> bool:
        """Is its graph to be walked for leaves that nobody has shown us?"""
        return times <= WHOLE or times & (times - 1) == 0

    def scan(self, times: int, buckets: tuple[Bucket, ...]) -> Scan | None:
        """Take down some parameters of these buckets before a backward."""
        if not any(len(bucket.members) > 1 for bucket in buckets):
            return None
        if times <= WHOLE:
            return Scan(islice(_alive(buckets), MOST_WHOLE))
        start, self._turn = self._turn, self._turn + MOST_SCANNED
        chosen = list(islice(_alive(buckets), start, self._turn))
        if len(chosen) < MOST_SCANNED:
            self._turn = 0
        return Scan(chosen)

    def learn(self, scan: Scan, mask: int) -> int:
        """Split buckets whose members were not all filled alike; return the buckets filled."""
        filled, left = scan.filled()
        apart: dict[tuple[Bucket, bool], list[weakref.ref[Tensor]]] = {}
        for members, was_filled in ((filled, True), (left, False)):
            for member in members:
                parameter = member()
                bucket = self._partition.bucket_of(parameter) if parameter is not None else None
                if bucket is not None and bool(bucket.bit & mask) is not was_filled:
                    apart.setdefault((bucket, was_filled), []).append(member)
        for (bucket, was_filled), members in apart.items():
            part = self._partition.part(bucket, members)
            if part is not None and was_filled:
                mask |= part.bit
        return mask


def _alive(buckets: Iterable[Bucket]) -> Iterator[tuple[weakref.ref[Tensor], Tensor]]:
    for bucket in buckets:
        for member in bucket.members:
            parameter = member()
            if parameter is not None:
                yield member, parameter
