"""The machine is total, forgetful and bounded, and moves as its table says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.lifecycle.histories import BUCKETS, OWNERS, events, histories
from zerograd.lifecycle import machine
from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.judge import Judge, judge
from zerograd.lifecycle.machine import AFTER, advance, next_phase
from zerograd.lifecycle.state import (
    INITIAL,
    MOST_CONTRIBUTIONS,
    UNKNOWN,
    BucketState,
    Contribution,
    Phase,
)
from zerograd.rules import ALL_RULES


def state_after(history: Iterable[Event], bucket: str = "x") -> BucketState:
    return reduce(lambda state, event: advance(state, event, bucket), history, INITIAL)


@pytest.mark.parametrize("kind", EventKind)
@pytest.mark.parametrize("phase", Phase)
def test_the_table_has_a_next_phase_for_every_kind_in_every_phase(
    phase: Phase, kind: EventKind
) -> None:
    assert next_phase(phase, kind) in Phase


@given(history=histories, unknown=st.booleans())
def test_every_event_moves_every_state_and_the_result_can_be_hashed(
    history: list[Event], unknown: bool
) -> None:
    state = UNKNOWN if unknown else INITIAL
    for event in history:
        state = advance(state, event, "x")
        assert hash(state) == hash(state._replace())
        assert all(state.phase(owner) in Phase for owner in OWNERS)


@given(history=histories)
def test_the_judge_and_its_end_never_raise(history: list[Event]) -> None:
    list(judge(history, ALL_RULES))
    list(judge(history, ALL_RULES, {"a": ["x", "y"], "b": ["y"]}))


@given(before=histories, after=histories)
def test_a_clear_forgets_everything_before_it_in_the_phase(
    before: list[Event], after: list[Event]
) -> None:
    clear = Event(EventKind.CLEAR, "a", Spot("train.py", 1), BUCKETS)
    with_past, without = state_after([*before, clear, *after]), state_after([clear, *after])
    assert [with_past.phase(owner) for owner in OWNERS] == [without.phase(o) for o in OWNERS]
    assert with_past.contributions == without.contributions
    assert (with_past.scaled, with_past.unknown) == (without.scaled, without.unknown)


@given(history=histories, stranger=histories)
def test_owners_of_other_buckets_do_not_disturb_the_phase(
    history: list[Event], stranger: list[Event]
) -> None:
    """Another optimizer with buckets of its own may do anything in between."""
    others = [replace(event, owner="other", buckets=("elsewhere",)) for event in stranger]
    mixed = [event for pair in zip(history, others, strict=False) for event in pair]
    mixed += history[len(others) :]
    alone, together = state_after(history), state_after(mixed)
    for owner in OWNERS:
        assert alone.phase(owner) is together.phase(owner)
    assert alone.absent == together.absent


@given(history=histories, event=events, owner=st.sampled_from(OWNERS))
def test_the_whole_state_moves_in_phase_as_the_table_says(
    history: list[Event], event: Event, owner: str
) -> None:
    before = state_after(history)
    event = replace(event, owner=owner, buckets=("x",))
    assert advance(before, event, "x").phase(owner) is next_phase(before.phase(owner), event.kind)


@given(history=histories, event=events)
def test_an_event_that_does_not_reach_a_bucket_leaves_what_its_holders_see(
    history: list[Event], event: Event
) -> None:
    """Of owners that hold the bucket, and so reach it whenever they step."""
    holder = [replace(each, buckets=("x",)) if each.owner == "a" else each for each in history]
    before = state_after(holder)
    after = advance(before, replace(event, owner="b", buckets=("y",)), "x")
    assert after.phase("a") is before.phase("a")
    assert len(after.contributions) <= len(before.contributions)


many = st.lists(
    st.tuples(st.sampled_from([EventKind.BACKWARD, EventKind.STEP]), st.integers(0, 30)),
    min_size=20,
    max_size=80,
)


@given(moves=many)
@example(moves=[(kind, n) for n in range(30) for kind in (EventKind.BACKWARD, EventKind.STEP)])
def test_overflow_of_contributions_keeps_the_phase_of_every_holder(
    moves: list[tuple[EventKind, int]],
) -> None:
    """Even where so many optimizers share a bucket that no two contributions look alike."""
    owners = [f"o{n}" for n in range(31)]
    state, phases = INITIAL, dict.fromkeys(owners, Phase.EMPTY)
    for count, (kind, number) in enumerate(moves):
        owner = owners[number]
        event = Event(kind, owner, Spot("train.py", count + 1), ("x",), backward=str(count))
        state = advance(state, event, "x")
        for each in owners if kind is EventKind.BACKWARD else [owner]:
            phases[each] = next_phase(phases[each], kind)
        assert len(state.contributions) <= MOST_CONTRIBUTIONS
        assert {each: state.phase(each) for each in owners} == phases


def test_a_backward_at_the_same_spot_adds_no_new_state_to_a_loop_without_steps() -> None:
    """So that a loop in source code reaches a fixed point."""
    event = Event(EventKind.BACKWARD, "opt", Spot("train.py", 3), ("x",))
    once = advance(INITIAL, event, "x")
    assert advance(once, event, "x") == once


def test_a_loop_without_a_clear_reaches_finitely_many_states() -> None:
    loop = [
        Event(EventKind.BACKWARD, "a", Spot("train.py", 1), ("x",), fills=frozenset("ab")),
        Event(EventKind.STEP, "a", Spot("train.py", 2), ("x",)),
        Event(EventKind.BACKWARD, "b", Spot("train.py", 3), ("x", "y"), fills=frozenset("ab")),
        Event(EventKind.STEP, "b", Spot("train.py", 4), ("y",)),
        Event(EventKind.SCALER_UPDATE, "", Spot("train.py", 5), scaler="s"),
    ]
    state, met = INITIAL, set()
    for _ in range(12):
        for event in loop:
            state = advance(state, event, "x")
        met.add(state)
    assert len(met) <= 3


def test_a_step_of_another_optimizer_uses_only_the_losses_that_it_shares() -> None:
    spot = Spot("train.py", 1)
    shared = Event(EventKind.BACKWARD, "", spot, ("x", "y"), backward="b1", fills=frozenset("ab"))
    own = Event(EventKind.BACKWARD, "", spot, ("x",), backward="b2", fills=frozenset("a"))
    state = state_after([shared, own, Event(EventKind.STEP, "b", spot, ("y",))])
    assert [each.used_by for each in state.contributions] == [frozenset("b"), frozenset()]


def test_the_events_a_judge_completes_reach_all_that_the_owner_holds() -> None:
    court = Judge(ALL_RULES, {"opt": ["net", "head"]})
    court.feed(Event(EventKind.BACKWARD, "opt", Spot("train.py", 1)))
    court.feed(Event(EventKind.CLEAR, "opt", Spot("train.py", 2)))
    for bucket in ("net", "head"):
        assert court.state(bucket).phase("opt") is Phase.EMPTY
        assert court.state(bucket).lost is not None
    assert "opt" not in {bucket for bucket in ("opt",) if court.state(bucket).seen}


# Tests of the tests: each transition made wrong once, and the property that must notice.

WRONG_PHASES = [
    (kind, phase, wrong)
    for kind in EventKind
    for phase in Phase
    for wrong in Phase
    if wrong is not AFTER[kind][phase]
]


@pytest.mark.parametrize(
    ("kind", "phase", "wrong"),
    WRONG_PHASES,
    ids=[f"{kind.value}-{phase.value}-to-{wrong.value}" for kind, phase, wrong in WRONG_PHASES],
)
def test_a_wrong_entry_of_the_table_is_noticed(
    monkeypatch: pytest.MonkeyPatch, kind: EventKind, phase: Phase, wrong: Phase
) -> None:
    monkeypatch.setitem(AFTER, kind, AFTER[kind] | {phase: wrong})
    spot, a = Spot("train.py", 1), frozenset("a")
    used, new = Contribution("b1", spot, used_by=a), Contribution("b2", spot)
    held = {
        Phase.EMPTY: (),
        Phase.FRESH: (new,),
        Phase.SPENT: (used,),
        Phase.STALE: (used, new),
    }
    before = BucketState(contributions=held[phase])
    assert before.phase("a") is phase
    after = advance(before, Event(kind, "a", spot, ("x",)), "x")
    assert after.phase("a") is not machine.next_phase(phase, kind)
