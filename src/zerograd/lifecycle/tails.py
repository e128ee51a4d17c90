"""Tails: the micro-batches that are left over at the end of an epoch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tails:
    """Looks for an odd window once an epoch among windows that are otherwise all alike.

    With K micro-batches a window and r left over at the end of an epoch, the first
    window of each later epoch has K + r, or r were thrown away before it. Both come
    at equal distances, counted from the start. Windows that vary otherwise are meant
    to, and end the search.
    """

    size: int = 0  # K
    since: int = 0  # windows since the last odd one, or since the start
    gap: int = 0  # that distance for the odd one before
    odd: tuple[int, int] = (0, 0)  # micro-batches too many, and thrown away
    given_up: bool = False

    def feed(self, size: int, wasted: int) -> bool:
        """Take in the next window: the most backwards that its step used, and how many were lost.

        Was it the second odd one at the same distance?
        """
        if self.given_up:
            return False
        self.size = self.size or size
        now = (size - self.size, wasted)
        if self.size < 2 or now == (0, 0):
            self.since += 1
            return False
        again = now == self.odd and self.since == self.gap
        first = self.odd == (0, 0) and self.since >= 2
        leftover = 0 < sum(now) < self.size and min(now) == 0
        self.given_up = not leftover or not (again or first)
        self.odd, self.gap, self.since = now, self.since, 1
        return again and not self.given_up
