"""Windows that agree with each other, and those that do not."""

from __future__ import annotations

import pytest

from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.state import Drop
from zerograd.lifecycle.window import Window
from zerograd.lifecycle.windows import window_faults

LOSS, CLEAR, STEP = (Spot("train.py", line) for line in (3, 1, 5))


def window(lost: int, used: int = 1) -> Window:
    """Return one in which a clear threw away `lost` backwards, one at a time."""
    counts = {"lost": ((LOSS, lost),), "clears": ((LOSS, lost),)} if lost else {}
    drop = Drop(LOSS, CLEAR) if lost else None
    return Window(STEP, used=((LOSS, used),), drop=drop, **counts)


@pytest.mark.parametrize("lost", [(3, 3), (3, 1, 3), (3, 3, 1, 3)])
def test_windows_that_lose_as_much_as_ever_are_cleared_early(lost):
    (fault,) = window_faults([window(each) for each in lost])
    assert (fault.code, fault.spot) == ("ZG501", CLEAR)


@pytest.mark.parametrize(
    "lost",
    [
        (3, 1),  # the short window at the end of an epoch
        (1, 3, 1),  # the same, seen from the second one on
        (3, 2, 1),
        (3, 0, 3),  # a guard that dislikes some batches
        (0, 3),
    ],
)
def test_windows_that_differ_prove_nothing(lost):
    assert window_faults([window(each) for each in lost]) == []
