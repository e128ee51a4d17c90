"""What the machine says is in a bucket is what `.grad` holds, number by number."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from tests.lifecycle.torch_world import Layout, Move, World  # noqa: E402
from zerograd.lifecycle import machine  # noqa: E402
from zerograd.lifecycle.events import Event, EventKind, Spot  # noqa: E402
from zerograd.lifecycle.machine import advance  # noqa: E402
from zerograd.lifecycle.state import INITIAL, BucketState  # noqa: E402

numbers = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True).map(tuple)
simple = st.one_of(
    st.builds(Move, st.sampled_from(["clear_optimizer", "clear_module"]), st.integers(0, 2),
              zero=st.booleans()),
    st.builds(Move, st.just("clear_parameter"), on=numbers, zero=st.booleans()),
    st.builds(Move, st.just("backward"), on=numbers),
    st.builds(Move, st.just("backward"), on=numbers),
    st.builds(Move, st.just("assign"), on=numbers),
    st.builds(Move, st.sampled_from(["step", "clip"]), st.integers(0, 2)),
    st.builds(Move, st.just("step"), st.integers(0, 2)),
)  # fmt: skip
with_closure = st.builds(
    Move,
    st.sampled_from(["closure", "lbfgs"]),
    st.integers(0, 2),
    inner=st.lists(simple, min_size=1, max_size=4).map(tuple),
)
programs = st.lists(st.one_of(simple, simple, simple, with_closure), max_size=16)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """One to three parameters; one to three optimizers, disjoint or sharing; two modules."""
    count = draw(st.integers(1, 3))
    some = st.lists(st.integers(0, count - 1), min_size=1, unique=True).map(tuple)
    optimizers = draw(st.lists(some, min_size=1, max_size=3))
    return Layout(count, tuple(optimizers), tuple(draw(st.lists(some, min_size=1, max_size=2))))


def agree(layout: Layout, program: list[Move]) -> None:
    World(layout).run(program)


@settings(max_examples=300, deadline=None)
@given(layout=layouts(), program=programs)
def test_the_machine_says_of_every_bucket_what_grad_holds(
    layout: Layout, program: list[Move]
) -> None:
    agree(layout, program)


@settings(max_examples=20, deadline=None)
@given(program=st.lists(simple, min_size=30, max_size=45))
def test_the_phase_agrees_where_there_are_more_backwards_than_are_told_apart(
    program: list[Move],
) -> None:
    fills = [Move("backward", on=(0, 1)) for _ in range(10)]
    kept = [move for move in program if not move.kind.startswith("clear")]
    agree(Layout(2, ((0,), (0, 1)), ((0,),)), [*fills, *kept, *fills])


# A loss scaler multiplies by 2**20: what is still scaled lies above that, the rest below.

SCALE = 2.0**20
scaled_moves = st.lists(
    st.sampled_from(["backward", "unscale", "step", "update", "clear", "clip"]), max_size=16
)


def agree_on_the_scale(moves: list[str]) -> None:
    weight = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, growth_interval=10**6)
    state, unscaled, stepped, twice, filled = INITIAL, False, False, False, 0
    for line, move in enumerate(moves, 1):
        spot = Spot("program.py", line)
        if move == "backward" and (stepped or not unscaled) and filled < 8:
            scaler.scale(weight * 2.0**filled).backward()
            event = Event(EventKind.BACKWARD, "opt", spot, backward=str(filled), scaler="s")
            filled += 1
        elif move == "unscale" and not unscaled and not stepped and weight.grad is not None:
            scaler.unscale_(optimizer)
            event, unscaled = Event(EventKind.UNSCALE, "opt", spot, scaler="s"), True
        elif move == "step" and not stepped and weight.grad is not None:
            scaler.step(optimizer)
            event, unscaled, stepped = Event(EventKind.STEP, "opt", spot, scaler="s"), True, True
        elif move == "update" and (unscaled or stepped):
            scaler.update()
            twice = unscaled and not stepped  # the next step or unscale_ takes the scale out again
            event, unscaled, stepped = (
                Event(EventKind.SCALER_UPDATE, "", spot, scaler="s"),
                False,
                False,
            )
        elif move == "clear":
            optimizer.zero_grad()
            event, twice = Event(EventKind.CLEAR, "opt", spot), False
        elif move == "clip":
            torch.nn.utils.clip_grad_norm_([weight], float("inf"))
            event = Event(EventKind.CLIP, "opt", spot)
        else:
            continue
        early = twice and all(each.early for each in state.contributions)
        reused = any(each.used_by for each in state.contributions)
        state = advance(state, event, "opt")
        held = 0.0 if weight.grad is None else weight.grad.item()
        if move == "step":
            # An update between unscale_ and step makes the step take the scale out twice. A later
            # backward still counts in full, and outweighs what is left of the earlier ones.
            assert reused or (0 < held < 1) == early
            if reused or any(each.early for each in state.contributions):
                return
        assert bool(state.scaled) == (held >= SCALE)
        assert ("opt" in state.awaiting) == stepped


@settings(max_examples=300, deadline=None)
@given(moves=scaled_moves)
def test_the_machine_knows_whether_the_scale_is_still_in_the_gradient(moves: list[str]) -> None:
    agree_on_the_scale(moves)


# Tests of the tests: each transition is made wrong on purpose, and the programs notice.

Move_ = Callable[[BucketState, Event, bool], BucketState]
MOVES = dict(machine._MOVES)


def without(kind: EventKind) -> Move_:
    """The transition does nothing."""
    return lambda state, event, reached: state


def everywhere(kind: EventKind) -> Move_:
    """The transition reaches buckets that it should not."""
    return lambda state, event, reached: MOVES[kind](state, event, True)


def but(kind: EventKind, change: Callable[[BucketState, BucketState], BucketState]) -> Move_:
    """The transition, with something of it changed where it reaches."""

    def move(state: BucketState, event: Event, reached: bool) -> BucketState:
        after = MOVES[kind](state, event, reached)
        return change(state, after) if reached else after

    return move


def forgetful(before: BucketState, after: BucketState) -> BucketState:
    return after._replace(contributions=after.contributions[-1:])


def unused(before: BucketState, after: BucketState) -> BucketState:
    return after._replace(
        contributions=tuple(each._replace(used_by=frozenset()) for each in after.contributions),
    )


WRONG: dict[str, tuple[EventKind, Move_]] = {
    "a clear does nothing": (EventKind.CLEAR, without(EventKind.CLEAR)),
    "a clear clears other buckets": (EventKind.CLEAR, everywhere(EventKind.CLEAR)),
    "a clear keeps the contributions": (
        EventKind.CLEAR,
        but(EventKind.CLEAR, lambda old, new: new._replace(contributions=old.contributions)),
    ),
    "a clear to zero leaves None": (
        EventKind.CLEAR,
        but(EventKind.CLEAR, lambda old, new: new._replace(absent=True)),
    ),
    "a clear to None leaves zeros": (
        EventKind.CLEAR,
        but(EventKind.CLEAR, lambda old, new: new._replace(absent=old.absent)),
    ),
    "a clear loses nothing": (
        EventKind.CLEAR,
        but(EventKind.CLEAR, lambda old, new: new._replace(lost=None)),
    ),
    "a backward does nothing": (EventKind.BACKWARD, without(EventKind.BACKWARD)),
    "a backward fills all": (EventKind.BACKWARD, everywhere(EventKind.BACKWARD)),
    "a backward replaces": (EventKind.BACKWARD, but(EventKind.BACKWARD, forgetful)),
    "a backward makes all fresh": (EventKind.BACKWARD, but(EventKind.BACKWARD, unused)),
    "a backward leaves None": (
        EventKind.BACKWARD,
        but(EventKind.BACKWARD, lambda old, new: new._replace(absent=old.absent)),
    ),
    "an assignment does nothing": (EventKind.ASSIGN, without(EventKind.ASSIGN)),
    "an assignment adds": (EventKind.ASSIGN, MOVES[EventKind.BACKWARD]),
    "an assignment leaves None": (
        EventKind.ASSIGN,
        but(EventKind.ASSIGN, lambda old, new: new._replace(absent=old.absent)),
    ),
    "a step does nothing": (EventKind.STEP, without(EventKind.STEP)),
    "a step uses other buckets": (EventKind.STEP, everywhere(EventKind.STEP)),
    "a step clears": (
        EventKind.STEP,
        but(EventKind.STEP, lambda old, new: new._replace(contributions=())),
    ),
    "a step makes all fresh": (EventKind.STEP, but(EventKind.STEP, unused)),
    "a step uses the newest only": (
        EventKind.STEP,
        but(
            EventKind.STEP,
            lambda old, new: new._replace(
                contributions=(*old.contributions[:-1], *new.contributions[-1:])
            ),
        ),
    ),
    "a clip clears": (EventKind.CLIP, MOVES[EventKind.CLEAR]),
    "a clip uses": (EventKind.CLIP, MOVES[EventKind.STEP]),
}

WRONG_SCALE: dict[str, tuple[EventKind, Move_]] = {
    "an unscale does nothing": (EventKind.UNSCALE, without(EventKind.UNSCALE)),
    "an unscale keeps the factor": (
        EventKind.UNSCALE,
        but(EventKind.UNSCALE, lambda old, new: new._replace(scaled=old.scaled)),
    ),
    "an unscale leaves no mark": (
        EventKind.UNSCALE,
        but(EventKind.UNSCALE, lambda old, new: new._replace(unscaled="")),
    ),
    "an update is never early": (
        EventKind.SCALER_UPDATE,
        lambda state, event, reached: MOVES[EventKind.SCALER_UPDATE](
            state, event, reached
        )._replace(contributions=state.contributions),
    ),
    "a step keeps the factor": (
        EventKind.STEP,
        but(EventKind.STEP, lambda old, new: new._replace(scaled=old.scaled)),
    ),
    "a step awaits no update": (
        EventKind.STEP,
        but(EventKind.STEP, lambda old, new: new._replace(awaiting=old.awaiting)),
    ),
    "a backward leaves no factor": (
        EventKind.BACKWARD,
        but(EventKind.BACKWARD, lambda old, new: new._replace(scaled="")),
    ),
    "a clear keeps the factor": (
        EventKind.CLEAR,
        but(EventKind.CLEAR, lambda old, new: new._replace(scaled=old.scaled)),
    ),
    "an update does nothing": (EventKind.SCALER_UPDATE, without(EventKind.SCALER_UPDATE)),
    "an update takes the factor out": (
        EventKind.SCALER_UPDATE,
        lambda state, event, reached: MOVES[EventKind.SCALER_UPDATE](
            state, event, reached
        )._replace(unscaled="s", scaled=""),
    ),
}

hunting = settings(
    max_examples=400,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_transition_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    kind, move = WRONG[name]
    monkeypatch.setitem(machine._MOVES, kind, move)
    with pytest.raises(AssertionError):
        hunting(given(layout=layouts(), program=programs)(agree))()


@pytest.mark.parametrize("name", WRONG_SCALE)
def test_a_wrong_transition_of_the_scale_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind, move = WRONG_SCALE[name]
    monkeypatch.setitem(machine._MOVES, kind, move)
    with pytest.raises(AssertionError):
        hunting(given(moves=scaled_moves)(agree_on_the_scale))()


def test_no_transition_is_left_out_of_what_is_made_wrong() -> None:
    broken = {kind for kind, _ in [*WRONG.values(), *WRONG_SCALE.values()]}
    same = {EventKind.STEP_SKIPPED: EventKind.STEP, EventKind.TOUCH: EventKind.CLIP}
    assert broken | set(same) == set(EventKind)
    for kind, like in same.items():
        assert MOVES[kind] is MOVES[like]
