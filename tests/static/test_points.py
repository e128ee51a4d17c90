"""Points joined and moved: no pair is lost, and what brings nothing new costs nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zerograd.static.engine.flow.points import Change, Side, assume, join, moved

NONE = frozenset[int]()
ONE = frozenset(((0, NONE), (1, NONE)))
OTHER = frozenset(((1, NONE), (2, frozenset((3,)))))


def test_a_join_holds_the_pairs_of_all_points() -> None:
    joined = join([{"net": ONE}, None, {"net": OTHER, "head": ONE}])
    assert joined == {"net": ONE | OTHER, "head": ONE}


def test_a_join_of_nothing_new_is_the_first_point() -> None:
    point = {"net": ONE | OTHER}
    assert join([point, {"net": OTHER}, point]) is point
    assert join([None, None]) is None


def test_a_join_leaves_its_points_as_they_were() -> None:
    first, second = {"net": ONE}, {"net": OTHER}
    join([first, second])
    assert (first, second) == ({"net": ONE}, {"net": OTHER})


def test_a_move_asks_once_for_each_state() -> None:
    asked: list[int] = []
    pairs = frozenset((state, frozenset((literal,))) for state in (0, 1) for literal in range(8))

    def move(state: int) -> int:
        asked.append(state)
        return 5

    assert moved(pairs, move) == {(5, frozenset((literal,))) for literal in range(8)}
    assert sorted(asked) == [0, 1]
    assert moved(pairs, lambda state: state) is pairs


literals = st.frozensets(st.integers(0, 7), max_size=4)


@given(known=literals, holds=st.integers(0, 7))
def test_one_side_of_a_branch_is_reached_by_what_does_not_know_the_other(
    known: frozenset[int], holds: int
) -> None:
    there = assume({"net": frozenset(((0, known),))}, Side(holds))
    assert there == {"net": frozenset() if holds ^ 1 in known else {(0, known | {holds})}}


def test_what_becomes_of_literals_is_asked_once_for_each_set() -> None:
    asked: list[frozenset[int]] = []

    def become(known: frozenset[int]) -> frozenset[int]:
        asked.append(known)
        return known - {1}

    pairs = frozenset((state, frozenset((literal,))) for state in range(8) for literal in (1, 2))
    change = Change(become)
    for _ in range(2):
        assert change.of(pairs) == {
            (state, each) for state in range(8) for each in (frozenset(), frozenset((2,)))
        }
    assert sorted(map(sorted, asked)) == [[1], [2]]
