"""What a bucket holds: small, frozen, hashable, finitely many.

Tuples with names, because states are compared and looked up at every event.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from zerograd.lifecycle.events import Spot

MOST_CONTRIBUTIONS = 16  # past that the oldest two are joined, which only makes rules quieter


class Phase(Enum):
    """What the gradient is, seen by one owner."""

    EMPTY = "empty"  # nothing since the last clear
    FRESH = "fresh"  # contributions that no step of this owner has used
    SPENT = "spent"  # contributions that a step has used, not cleared
    STALE = "stale"  # new contributions on top of spent ones


class Contribution(NamedTuple):
    """What one backward, or one assignment, left in a bucket."""

    backward: str
    spot: Spot
    fills: frozenset[str] = frozenset()  # owners that the same backward filled
    used_by: frozenset[str] = frozenset()  # owners that stepped on that loss since
    read_by: frozenset[str] = frozenset()  # of used_by, those that took an input's gradient only
    used_at: Spot | None = None  # where the last of these steps stands
    before: frozenset[str] = frozenset()  # of used_by, those before the newest backward here
    early: Spot | None = None  # a scaler update that came before the step
    early_by: str = ""  # the scaler of that update


class Drop(NamedTuple):
    """A clear that threw away what no step has used.

    `shared` is weaker: another optimizer has stepped on that loss, so nothing is lost for all.
    It says only why the owner's own step, if it comes before another backward, finds nothing.
    """

    backward: Spot
    clear: Spot
    finite: bool = True
    shared: bool = False
    chosen: bool = False  # by a condition on the round's own data: a guard, for all one knows


class Suspicion(NamedTuple):
    """A step that looks leaked, until another optimizer shares its loss."""

    owner: str
    step: Spot
    left: Contribution  # what another optimizer's loss had left behind
    own: Contribution  # the loss that this owner meant to step on


class BucketState(NamedTuple):
    """One bucket: its contributions in order of arrival, and the marks beside them.

    The phase is not stored: it follows from which contributions an owner has
    used. So two optimizers that hold the same bucket each see their own phase.
    """

    contributions: tuple[Contribution, ...] = ()
    scaled: str = ""  # the scaler whose factor is still in it
    unscaled: str = ""  # the scaler that took its factor out since the last clear
    lost: Drop | None = None
    stepped: frozenset[str] = frozenset()  # owners that have stepped in this activation of the loop
    earlier: frozenset[str] = frozenset()  # owners that have stepped in one before
    awaiting: frozenset[str] = frozenset()  # owners stepped through a scaler, update still due
    halfway: frozenset[str] = frozenset()  # owners that a scaler has unscaled, update still due
    due: str = ""  # the scaler that owes this update
    absent: bool = True  # `.grad` is None
    seen: bool = False  # something has cleared or filled it
    suspicion: Suspicion | None = None
    unknown: bool = False  # something unseen may have touched it: no rule speaks until a clear

    def phase(self, owner: str) -> Phase:
        """Return what the bucket is to `owner`."""
        if not self.contributions:
            return Phase.EMPTY
        used = [owner in each.used_by for each in self.contributions]
        if all(used):
            return Phase.SPENT
        return Phase.STALE if any(used) else Phase.FRESH


INITIAL = BucketState()
UNKNOWN = BucketState(unknown=True, absent=False)
