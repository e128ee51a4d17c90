"""The work grows with the code, and not faster: counted in calls, whatever the load is."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from benchmarks.scaling import program
from zerograd import check_source


def calls_for(text: str) -> int:
    """Return how many functions are called to check a text."""
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        check_source(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("shape", "size"),
    [("long_file", 500), ("many_branches", 100), ("long_call_chain", 50), ("many_loops", 50)],
)
def test_four_times_the_code_is_about_four_times_the_work(shape: str, size: int) -> None:
    check_source(program(shape, 10))  # imports and caches
    assert calls_for(program(shape, 4 * size)) < 5 * calls_for(program(shape, size))
