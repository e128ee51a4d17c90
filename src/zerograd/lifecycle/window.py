"""One window: what happened to one owner between two of its steps."""

from __future__ import annotations

from dataclasses import dataclass

from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.state import Drop

SURE_OF_NO_GUARD = 15  # windows in a row, none of them whole, where data decide on each

Counts = tuple[tuple[Spot, int], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """What happened to one owner between two of its steps."""

    step: Spot
    bare: bool = False  # the step found every bucket empty
    used: Counts = ()  # backwards that the step used, by spot
    lost: Counts = ()  # backwards that a clear threw away unused, by spot
    drop: Drop | None = None  # the last of those clears; finite only if all of them were
    taken: Drop | None = None  # a clear since the last backward, after another optimizer's step
    clears: Counts = ()  # how many those were, by the spot of what they threw away
    shared: frozenset[Spot] = frozenset()  # lost ones that filled other optimizers too
    within: Drop | None = None  # the last that a method of the optimizer, or its closure, made
    averaged: bool | None = None  # was any loss divided or weighted? None: not known
    synchronised: Counts = ()  # backwards that all-reduced over ranks, by spot
    is_first: bool = False  # of its owner
    counted: bool | None = None  # does a counter decide when it ends? None: not known
    chosen: bool = False  # do a round's own data decide whether its step comes, or its clear?
    spoiled_before: int = 0  # how many right before it were chosen too, and none of them whole
    clipped: Spot | None = None  # a clip before the first backward, and no other since

    @property
    def size(self) -> int:
        """The most backwards from one spot that the step used."""
        return most(self.used)

    @property
    def wasted(self) -> int:
        """How many backwards from a spot that this step used were thrown away before it.

        Values that were not finite are no waste: throwing them away is right.
        """
        return self.dropped if self.drop is not None and self.drop.finite else 0

    @property
    def dropped(self) -> int:
        """How many these were, finite or not."""
        used = dict(self.used)
        return max((count for spot, count in self.lost if spot in used), default=0)

    @property
    def aside(self) -> Counts:
        """What was thrown away beside the loss that its step used, if it was one loss of its own.

        One that fills other optimizers as well is theirs to use.
        """
        used = dict(self.used)
        return (
            self.lost
            if used
            and len(self.lost) == 1
            and self.lost[0][0]
            not in {
                *used,
                *self.shared,
            }
            else ()
        )

    @property
    def is_whole(self) -> bool:
        """Did the step use all that there was? Batch 0 alone, as of `i % k == 0`, is none."""
        return bool(self.used) and not self.dropped and not (self.is_first and self.size == 1)

    @property
    def may_be_guarded(self) -> bool:
        """May a guard against bad batches have thrown away what it lost?"""
        return self.chosen and self.spoiled_before < SURE_OF_NO_GUARD

    @property
    def is_even(self) -> bool:
        """Did each clear throw away as many backwards from a spot as the step used?"""
        used, clears = dict(self.used), dict(self.clears)
        return all(
            count == clears.get(spot, 0) * used[spot] for spot, count in self.lost if spot in used
        )

    @property
    def is_repeated(self) -> bool:
        """Is it no window of its own, but one more step on what the step before it used?"""
        return not self.bare and not self.used and not self.lost

    @property
    def lost_all(self) -> bool:
        """Did the step find nothing because finite gradients had been thrown away?"""
        return self.bare and self.drop is not None and self.drop.finite


def most(counts: Counts) -> int:
    return max((count for _, count in counts), default=0)
