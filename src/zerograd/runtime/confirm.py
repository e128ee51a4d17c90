"""Looks at values, taken only on a suspicion and ever more rarely at the same place."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from zerograd.runtime import torch_facts
from zerograd.runtime.buckets import Bucket
from zerograd.runtime.call_site import Site

MOST_GRADIENTS = 64  # read in one look
MOST_PLACES = 1024


@dataclass(slots=True)
class _Place:
    asked: int = 0
    insist: bool = False
    answer: bool = False
    norm: float | None = None


class Looks:
    """Answers questions about values; the same one in the same place at 1, 2, 4, 8, … times."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, Site, str], _Place] = {}
        self.taken = 0  # how many times values were read
        self.refused = False  # wanted, but not possible just then

    def is_zero(self, bucket: Bucket, site: Site) -> bool | None:
        """Are all gradients of the bucket zero? None: cannot be told now."""
        place = self._place("zero", site, bucket.name)
        if not self._is_due(place):
            bucket.certain = False
            bucket.stale_norm = place.norm
            return place.answer
        if not self._may_look():
            return None
        place.norm = self.norm(bucket)
        place.answer = place.norm == 0.0
        place.insist = False
        bucket.certain = True
        bucket.stale_norm = place.norm
        return place.answer

    def is_finite(self, buckets: list[Bucket], site: Site) -> bool:
        """Are the gradients that a clear at `site` is about to drop finite?"""
        place = self._place("finite", site, buckets[0].name)
        if self._is_due(place) and self._may_look():
            place.answer = all(math.isfinite(self.norm(bucket)) for bucket in buckets)
        return place.answer

    def insist(self, bucket: Bucket) -> None:
        """Look afresh the next time anyone asks about this bucket."""
        for (_, _, name), place in self._places.items():
            if name == bucket.name:
                place.insist = True

    def norm(self, bucket: Bucket) -> float:
        """Return the norm of the bucket's gradients, of at most 64 of them. Synchronises."""
        self.taken += 1
        values = torch_facts.norms(bucket.gradients(MOST_GRADIENTS))
        return math.sqrt(math.fsum(value * value for value in values)) if values else 0.0

    def fingerprint(self, tensor: Tensor) -> float | None:
        """Return a number that changes when the values do, nearly always. Synchronises."""
        if not self._may_look():
            return None
        self.taken += 1
        return torch_facts.norms([tensor])[0]

    def is_due_at(self, bucket: Bucket, site: Site) -> bool:
        """Is it time, at this place, to watch the bucket's values for updates by hand?"""
        return self._is_due(self._place("moved", site, bucket.name))

    def _may_look(self) -> bool:
        if torch_facts.may_look_at_values():
            return True
        self.refused = True
        return False

    def _place(self, question: str, site: Site, name: str) -> _Place:
        key = (question, site, name)
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            place = self._places[key] = _Place()
        return place

    @staticmethod
    def _is_due(place: _Place) -> bool:
        place.asked += 1
        return place.insist or place.asked & (place.asked - 1) == 0
