"""What ranks agree on without talking: folders, shards, and when each of them stepped."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding, Live
from zerograd.rules import BY_CODE
from zerograd.runtime.ranks import Rank, join_ranks, merge
from zerograd.runtime.run_folder import RunFolder, RunOptions, Shard
from zerograd.runtime.step_log import MOST_ENTRIES, StepLog, compare

K = EventKind


def log(*windows: tuple[int, bool, bool], owner: str = "opt") -> dict[str, object]:
    """A log of updates, each: synchronised backwards, cleared, skipped."""
    return log_of(*windows, owner=owner).to_json()


def log_of(*windows: tuple[int, bool, bool], owner: str = "opt") -> StepLog:
    made = StepLog()
    feed(made, *windows, owner=owner)
    return made


def feed(made: StepLog, *windows: tuple[int, bool, bool], owner: str = "opt") -> None:
    for number, (backwards, cleared, skipped) in enumerate(windows):
        if cleared:
            made.feed(Event(K.CLEAR, owner, Spot("a.py", 1)), number)
        for _ in range(backwards):
            event = Event(K.BACKWARD, owner, Spot("a.py", 2), fills=frozenset({owner}),
                          synchronised=True)  # fmt: skip
            made.feed(event, number)
        kind = K.STEP_SKIPPED if skipped else K.STEP
        made.feed(Event(kind, owner, Spot("a.py", 3)), number)


USUAL = (1, True, False)


def test_ranks_that_agree_are_silent() -> None:
    assert compare({0: log(*[USUAL] * 50), 1: log(*[USUAL] * 50)}) == []


def test_a_rank_that_ends_earlier_is_no_fault() -> None:
    assert compare({0: log(*[USUAL] * 50), 1: log(*[USUAL] * 44)}) == []


def test_ranks_that_never_synchronise_train_apart() -> None:
    apart = [(0, True, False)] * 3
    assert compare({0: log(*apart), 1: log((0, False, False), *apart)}) == []


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (
            (2, True, False),
            "before step 4 of opt, rank 0 exchanges gradients once and rank 1 twice",
        ),
        ((1, False, False), "rank 0 clears the gradients of opt before step 4, rank 1 does not"),
        ((1, True, True), "rank 1 skips step 4 of opt, rank 0 takes it"),
    ],
)
def test_the_first_difference_is_told(window: tuple[int, bool, bool], words: str) -> None:
    one = log(*[USUAL] * 9)
    other = log(*[USUAL] * 3, window, *[USUAL] * 5)
    (finding,) = compare({0: one, 1: other})
    assert words in finding.message
    assert finding.live is not None and finding.live.step == 3 and finding.live.ranks == (0, 1)


def test_each_owner_is_compared_by_itself() -> None:
    one = {**log(*[USUAL] * 4, owner="a"), **log(*[USUAL] * 4, owner="b")}
    other = {**log(*[USUAL] * 4, owner="a"), **log(USUAL, (2, True, False), owner="b")}
    assert [finding.owner for finding in compare({0: one, 1: other})] == ["b"]


def test_a_million_steps_are_one_entry() -> None:
    made = StepLog()
    step = Event(K.STEP, "opt", Spot("a.py", 3))
    for number in range(10_000):
        made.feed(step, number)
    assert [len(life) for life in made.to_json()["opt"]] == [1]


def test_each_optimizer_of_a_name_is_compared_by_itself() -> None:
    early = (1, False, False)  # what begins with no clear would be update 5 on rank 0 alone
    logs = {}
    for rank in (0, 1):
        made = log_of(*[USUAL] * (5 + rank))
        made.begin("opt")
        feed(made, early, USUAL, (1 + rank, True, False))
        logs[rank] = made.to_json()
    (finding,) = compare(logs)
    assert (
        "before step 3 of opt, rank 0 exchanges gradients once and rank 1 twice" in finding.message
    )


def test_updates_where_data_is_uneven_on_purpose_are_not_compared() -> None:
    logs = {}
    for rank in (0, 1):
        made = StepLog()
        made.is_uneven = True
        feed(made, USUAL, (1 + rank, True, False))
        made.is_uneven = False
        made.begin("opt")
        feed(made, USUAL, (1, rank == 0, False))
        logs[rank] = made.to_json()
    (finding,) = compare(logs)
    assert "rank 0 clears the gradients of opt before step 2" in finding.message


def test_lives_without_end_are_bounded() -> None:
    made = StepLog()
    for _ in range(MOST_ENTRIES):
        made.begin("opt")
        feed(made, USUAL)
    assert len(made.to_json()["opt"]) <= MOST_ENTRIES


def a_finding(rank: int, **changes: object) -> dict[str, object]:
    live = Live(step=3 + rank, ranks=(rank,), parameters=(f"w{rank}",), count=2, share=0.1 * rank)
    finding = Finding(BY_CODE["ZG101"], Spot("a.py", 3), "m", "a", owner="opt", live=live)
    return replace(finding, **changes).to_json()  # type: ignore[arg-type]


def test_the_same_fault_on_several_ranks_is_one_finding() -> None:
    shards = [Shard(rank, rank, 2, findings=[a_finding(rank)]) for rank in (1, 0)]
    (finding,) = merge(shards)
    live = finding.live
    assert live == Live(3, (0, 1), live.parameters, 4, 0.1) if live else False
    assert live is not None and sorted(live.parameters) == ["w0", "w1"]


def test_different_faults_stay_apart() -> None:
    other = a_finding(1, spot=Spot("b.py", 9))
    shards = [Shard(0, 0, 2, findings=[a_finding(0)]), Shard(1, 1, 2, findings=[other])]
    assert [finding.spot.path for finding in merge(shards)] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("env", "rank"),
    [
        ({}, None),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"RANK": "x", "WORLD_SIZE": "2"}, None),
        ({"RANK": "1", "WORLD_SIZE": "2"}, Rank(1, 2, 2, 0, 1)),
        (
            {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1",
             "GROUP_WORLD_SIZE": "2"},
            Rank(5, 8, 4, 1, 2),
        ),
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}, Rank(5, 8, 4, 1, 2)),
    ],
)  # fmt: skip
def test_a_rank_knows_its_place(env: dict[str, str], rank: Rank | None) -> None:
    assert Rank.from_environment(env) == rank


def test_ranks_of_one_start_share_a_folder_and_those_of_the_next_have_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    options = RunOptions()
    first = [join_ranks(Rank(rank, 2, 2), options).path for rank in (0, 1)]
    second = [join_ranks(Rank(rank, 2, 2), options).path for rank in (1, 0)]
    assert first[0] == first[1] != second[0] == second[1]


def test_a_claim_is_granted_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert [folder.claim("x"), folder.claim("x"), folder.claim("y")] == [True, False, True]


def test_a_lock_tells_the_living_from_the_dead(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        folder.live_as("process-1")
        os.write(write, b"x")
        os.read(read, 0)
        import time

        time.sleep(60)
        os._exit(0)
    os.read(read, 1)
    folder.save(Shard(child, name="process-1"))
    assert [shard.lives for shard in folder.shards()] == [True]
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert [shard.lives for shard in folder.shards()] == [False]
    os.close(read)
    os.close(write)


def test_damaged_shards_are_passed_over(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.save(Shard(1, name="process-1"))
    (tmp_path / "process-2.json").write_text("{")
    (tmp_path / "process-3.json").write_text('{"new": 1}')
    assert [shard.pid for shard in folder.shards()] == [1]
