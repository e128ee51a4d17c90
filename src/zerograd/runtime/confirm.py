"""Looks at values, taken only on a suspicion and ever more rarely at the same place."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass

from torch import Tensor

from zerograd.runtime import torch_facts
from zerograd.runtime.buckets import Bucket
from zerograd.runtime.call_site import Site

MOST_GRADIENTS = 64  # read in one look
MOST_PLACES = 1024
PROBED = 64  # looks at the canary alone, at first each time and then this far apart
PATIENCE = 64  # looks that a suspicion is worth


@dataclass(slots=True)
class _Place:
    asked: int = 0
    answer: bool = False
    norm: float | None = None


class Looks:
    """Answers questions about values; the same one in the same place at 1, 2, 4, 8, … times.

    A bucket under suspicion is looked at each time, until its suspicion is spent.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, Site, str], _Place] = {}
        self.taken = 0  # how many times values were read

    def is_zero(self, bucket: Bucket, site: Site, phase: str) -> bool | None:
        """Are all gradients of the bucket zero? None: cannot be told now.

        An answer from memory leaves the bucket in doubt, unless a glance settles it. One line
        may find a bucket in several phases, each time cleared in one of them and never in another.
        """
        place = self._place(phase, site, bucket.name)
        surprise = place.answer and self._peek(bucket)  # where zeros are usual, and there are none
        if not self._is_due(place, bucket) and not surprise:
            # Where there is no zero to begin with, nobody has made it all zeros.
            bucket.doubt = place.answer or not self._peek(bucket)
            bucket.stale_norm = place.norm
            return place.answer
        if not torch_facts.may_look_at_values():
            return None
        bucket.stale_norm = place.norm = self.norm(bucket)
        place.answer = place.norm == 0.0
        return place.answer

    def knows_zeros(self, bucket: Bucket, site: Site, phase: str) -> bool:
        """Has the bucket been found cleared at this place before?"""
        place = self._places.get((phase, site, bucket.name))
        return place is not None and place.answer

    def has_grown(self, bucket: Bucket) -> bool | None:
        """Did the backward that has just ended leave anything but zeros? None: not known.

        Zeros do not mean that somebody cleared: a backward may leave nothing else. Asked
        of a bucket under suspicion only.
        """
        if not bucket.suspect or not torch_facts.may_look_at_values():
            return None
        bucket.suspect -= 1
        return self.norm(bucket) != 0.0

    def is_finite(self, buckets: list[Bucket], site: Site) -> bool:
        """Are the gradients that a clear at `site` is about to drop finite?"""
        place = self._place("finite", site, buckets[0].name)
        if self._is_due(place, buckets[0]) and torch_facts.may_look_at_values():
            place.answer = all(math.isfinite(self.norm(bucket)) for bucket in buckets)
        return place.answer

    def suspect(self, bucket: Bucket) -> None:
        """Look at this bucket each time for a while; ever more rarely, if that ends in doubt."""
        bucket.doubts += 1
        if bucket.doubts & (bucket.doubts - 1) == 0:
            bucket.suspect = PATIENCE

    def finds_zeros(self, bucket: Bucket, site: Site) -> bool | None:
        """Does the canary's gradient begin with zeros? None: not looked.

        Asked where no counter has moved. On other devices than the CPU, where a look
        would make the host wait, it is not taken without a suspicion.
        """
        place = self._place("probe", site, bucket.name)
        place.asked += 1
        if place.asked > PROBED and place.asked % PROBED:
            return None
        found = self._peek(bucket)
        return None if found is None else not found

    def _peek(self, bucket: Bucket) -> bool | None:
        parameter = bucket.canary()
        grad = parameter.grad if parameter is not None else None
        return torch_facts.peek(grad) if grad is not None else None

    def norm(self, bucket: Bucket) -> float:
        """Return the norm of the bucket's gradients, of at most 64 of them. Synchronises."""
        self.taken += 1
        values = torch_facts.norms(bucket.gradients(MOST_GRADIENTS))
        return math.sqrt(math.fsum(value * value for value in values)) if values else 0.0

    def not_zero(self, members: list[weakref.ref[Tensor]]) -> list[weakref.ref[Tensor]]:
        """Return those whose gradients are not all zeros. Synchronises."""
        held = [(ref, each.grad) for ref in members if (each := ref()) is not None]
        filled = [(ref, grad) for ref, grad in held if grad is not None]
        if not filled or not torch_facts.may_look_at_values():
            return []
        self.taken += 1
        values = torch_facts.norms([grad for _, grad in filled])
        return [ref for (ref, _), value in zip(filled, values, strict=True) if value != 0.0]

    def fingerprint(self, tensor: Tensor) -> float | None:
        """Return a number that changes when the values do, nearly always. Synchronises."""
        if not torch_facts.may_look_at_values():
            return None
        self.taken += 1
        return torch_facts.norms([tensor])[0]

    def remember(self, bucket: Bucket) -> None:
        """Take note of the canary's own values."""
        parameter = bucket.canary()
        bucket.print_before = self.fingerprint(parameter) if parameter is not None else None

    def stays(self, bucket: Bucket) -> bool:
        """Is the canary as the last step has left it? Asked a second time, it is known.

        `p.data.copy_(start)` moves no counter, so a search for a length of step that goes back
        in this way is told from a second step by the values alone.
        """
        before, bucket.print_before = bucket.print_before, None
        bucket.goes_back = before is None
        parameter = bucket.canary()
        if before is None or parameter is None:
            return False
        return self.fingerprint(parameter) == before

    def all_stay(self, buckets: list[Bucket]) -> bool:
        """Do all of them? Where one is not known yet all are asked again, together.

        A bucket that was split off later would else be known only when the others are not.
        """
        known = all(each.print_before is not None for each in buckets)
        stay = [self.stays(each) for each in buckets]
        if not known:
            for each in buckets:
                each.goes_back = True
        return all(stay)

    def before_step(self, bucket: Bucket, site: Site, *, of_torch: bool) -> None:
        """Take note of what a step finds without a gradient.

        It may have its update from elsewhere, as one that compares losses or differentiates
        on its own: it moves the parameter all the same. No optimizer of torch's does.
        """
        parameter = bucket.canary()
        if parameter is None or parameter.grad is not None:
            bucket.left_at = None
            return
        bucket.left_at = parameter._version
        asks = not of_torch and self._is_turn("itself", bucket, site)
        bucket.left_as = self.fingerprint(parameter) if asks else None

    def after_step(self, bucket: Bucket) -> None:
        """Find out whether the step has moved it without a gradient."""
        parameter, left_at = bucket.canary(), bucket.left_at
        if parameter is None or left_at is None:
            return
        bucket.left_at, is_compared = None, bucket.left_as is not None
        if parameter.grad is None and (
            parameter._version != left_at
            or (is_compared and self.fingerprint(parameter) != bucket.left_as)
        ):
            bucket.goes_by_itself = True
        elif is_compared:
            bucket.goes_by_itself = False

    def is_due_at(self, bucket: Bucket, site: Site) -> bool:
        """Is it time, at this place, to watch the bucket's values for updates by hand?"""
        return self._is_turn("moved", bucket, site)

    def is_search_due(self, bucket: Bucket, site: Site) -> bool:
        """Is it time, at this place, to search for another parameter with the same gradient?"""
        return self._is_turn("shared", bucket, site)

    def is_part_due(self, bucket: Bucket, site: Site) -> bool:
        """Is it time, at this place, to see whether a clear by hand has reached all members?"""
        return self._is_turn("part", bucket, site)

    def _is_turn(self, question: str, bucket: Bucket, site: Site) -> bool:
        place = self._place(question, site, bucket.name)
        place.asked += 1
        return place.asked & (place.asked - 1) == 0

    def _place(self, question: str, site: Site, name: str) -> _Place:
        key = (question, site, name)
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            place = self._places[key] = _Place()
        return place

    @staticmethod
    def _is_due(place: _Place, bucket: Bucket) -> bool:
        place.asked += 1
        if bucket.suspect:
            bucket.suspect -= 1
            return True
        return place.asked & (place.asked - 1) == 0
