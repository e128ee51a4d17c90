"""What a run as a whole shows, when some of its owners are gone before it ends."""

from __future__ import annotations

import pytest

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.state import INITIAL
from zerograd.lifecycle.summary import OFTEN, RunLog


def run_of(*kinds: tuple[EventKind, str]) -> RunLog:
    log = RunLog()
    for _ in range(OFTEN):
        for line, (kind, owner) in enumerate(kinds, 1):
            log.feed(Event(kind, owner, Spot("train.py", line), buckets=("net",)))
    return log


@pytest.mark.parametrize(
    ("stepper", "expected"), [("inner", []), ("wrapper", []), (None, ["ZG203"])]
)
def test_what_was_stepped_stays_stepped_though_its_stepper_is_gone(stepper, expected):
    kinds = [(EventKind.CLEAR, "wrapper"), (EventKind.BACKWARD, "")]
    if stepper is not None:
        kinds.append((EventKind.STEP, stepper))
    faults = run_of(*kinds).faults({"net": INITIAL}, {"net": ("wrapper",)})
    assert [each.code for each in faults] == expected


def test_a_part_shares_what_was_seen_of_the_whole():
    log = run_of((EventKind.CLEAR, "opt"), (EventKind.BACKWARD, ""), (EventKind.STEP, "opt"))
    log.split("net", "head")
    assert list(log.faults({"head": INITIAL}, {"head": ("opt",)})) == []
