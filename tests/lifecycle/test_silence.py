"""Correct training stays silent, whatever its sizes, guards and order."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.judge import judge
from zerograd.rules import ALL_RULES

GAN = {"opt_d": ["disc"], "opt_g": ["gen"]}


def at(kind: EventKind, owner: str, line: int, *buckets: str, **more: object) -> Event:
    return Event(kind, owner, Spot("train.py", line), buckets, **more)  # type: ignore[arg-type]


def codes(events: Iterable[Event], holdings: dict[str, list[str]]) -> set[str]:
    return {finding.rule.code for finding in judge(events, ALL_RULES, holdings)}


windows = st.lists(
    st.tuples(
        st.integers(1, 5),  # micro-batches
        st.booleans(),  # one more before them that was not finite, and thrown away
        st.booleans(),  # another loss looked at first, and thrown away
        st.booleans(),  # the scaler skips the step
    ),
    max_size=12,
)


@given(windows=windows, to_none=st.booleans(), clear_first=st.booleans())
def test_windows_of_any_size_with_bad_batches_thrown_away(
    windows: list[tuple[int, bool, bool, bool]], to_none: bool, clear_first: bool
) -> None:
    events = []
    for size, bad, looked, skipped in windows:
        if clear_first:
            events.append(at(EventKind.CLEAR, "opt", 1, "net", to_none=to_none))
        if looked:
            events.append(at(EventKind.BACKWARD, "", 2, "net"))
            events.append(at(EventKind.CLEAR, "opt", 3, "net", to_none=to_none))
        if bad:
            events.append(at(EventKind.BACKWARD, "", 4, "net", scaler="s", averaged=True))
            events.append(at(EventKind.CLEAR, "opt", 5, "net", finite=False))
        fill = at(EventKind.BACKWARD, "", 4, "net", scaler="s", averaged=True)
        events += [fill] * size
        kind = EventKind.STEP_SKIPPED if skipped else EventKind.STEP
        events.append(at(kind, "opt", 6, "net", scaler="s"))
        events.append(at(EventKind.SCALER_UPDATE, "", 7, scaler="s"))
        if not clear_first:
            events.append(at(EventKind.CLEAR, "opt", 8, "net", to_none=to_none))
    # Sizes such as 2 2 3 2 3 are what a leaking tail looks like; nothing in them says otherwise.
    assert codes(events, {"opt": ["net"]}) <= {"ZG502"}


updates = st.lists(
    st.tuples(
        st.sampled_from(["opt_d", "opt_g"]),
        st.integers(1, 3),  # backwards, from as many spots
        st.booleans(),  # its loss also fills the other network
    ),
    max_size=20,
)


@given(updates=updates)
def test_two_networks_updated_in_any_order_each_cleared_before_its_own_loss(
    updates: list[tuple[str, int, bool]],
) -> None:
    events = []
    for owner, count, through in updates:
        first = 10 if owner == "opt_d" else 20
        own = GAN[owner]
        filled = ["disc", "gen"] if through else own
        events.append(at(EventKind.CLEAR, owner, first, *own))
        events += [at(EventKind.BACKWARD, "", first + n, *filled) for n in range(1, count + 1)]
        events.append(at(EventKind.STEP, owner, first + 5, *own))
    assert codes(events, GAN) == set()


@given(
    rounds=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=12),
    clipped=st.booleans(),
)
def test_one_loss_and_two_optimizers_of_different_pace(
    rounds: list[tuple[bool, bool, bool]], clipped: bool
) -> None:
    """Each is cleared right after its own step, in either order; one may wait for more losses."""
    held = {"fast": ["a"], "slow": ["b"]}
    events = []
    for step_slow, slow_first, clear_late in rounds:
        events.append(at(EventKind.BACKWARD, "", 1, "a", "b"))
        order = ["fast", *(["slow"] if step_slow else [])]
        steps = order[::-1] if slow_first else order
        for owner in steps:
            line = 10 if owner == "fast" else 20
            if clipped:
                events.append(at(EventKind.CLIP, owner, line, *held[owner]))
            events.append(at(EventKind.STEP, owner, line + 1, *held[owner]))
            if not clear_late:
                events.append(at(EventKind.CLEAR, owner, line + 2, *held[owner]))
        if clear_late:
            events += [at(EventKind.CLEAR, owner, 30, *held[owner]) for owner in steps]
    # Several losses from one spot into one slow step are summed on purpose here.
    assert codes(events, held) == set()
