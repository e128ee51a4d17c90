"""The trail that several rules tell: a gradient is used, grows, and is used again."""

from __future__ import annotations

from zerograd.lifecycle.events import Event
from zerograd.lifecycle.rule import Story
from zerograd.lifecycle.state import BucketState


def tell_growth(before: BucketState, event: Event, *, used: str, grew: str, again: str) -> Story:
    """Return the story of a use, of the backward that added onto it, and of the use at `event`.

    Args:
        used, grew, again: what is said at each of the three spots.
    """
    old = next((each for each in before.contributions if event.owner in each.used_by), None)
    new = next((each for each in before.contributions if event.owner not in each.used_by), None)
    return Story(
        event.spot,
        (
            (old.used_at if old else None, used),
            (new.spot if new else None, grew),
            (event.spot, again),
        ),
    )
