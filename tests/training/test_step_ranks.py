"""Step on two real processes (gloo): DDP, FSDP2, uneven data, skips, a rank that leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("rank_worker.py")
CLOSE = 1e-6

SCENARIOS = [
    "ddp_plain", "ddp_windows", "ddp_every", "ddp_arena", "ddp_skips", "ddp_break_and_drop",
    "ddp_all_zero", "ddp_unused", "ddp_batch_norm", "ddp_gan", "ddp_lbfgs", "ddp_exception",
    "ddp_inside", "no_models", "independent_models", "ddp_compiled",
    "fsdp2", "fsdp2_clip", "fsdp2_every", "fsdp2_train", "fsdp2_misuse",
]  # fmt: skip


def launch(folder: Path, names: list[str], world: int = 2) -> list[dict]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                WORKER,
                str(rank),
                str(world),
                f"{folder}/store",
                f"{folder}/out",
                *names,
            ],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(world)
    ]
    logs = []
    for process in processes:
        try:
            logs.append(process.communicate(timeout=180)[0])
        except subprocess.TimeoutExpired:
            process.kill()
            logs.append(process.communicate()[0] + "\n(killed: it hung)")
    results = []
    for rank in range(world):
        path = Path(f"{folder}/out.{rank}")
        assert path.exists(), logs[rank][-4000:]
        results.append(json.loads(path.read_text()))
    return results


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("ranks"), SCENARIOS)


def results_of(ranks, name):
    for rank, results in enumerate(ranks):
        assert name in results, f"rank {rank} stopped before: {results.get(list(results)[-1])}"
        assert "raised" not in results[name], results[name]["raised"]
    return [results[name] for results in ranks]


@pytest.mark.parametrize(
    "name",
    [
        "ddp_windows", "ddp_every", "ddp_arena", "ddp_skips", "ddp_break_and_drop",
        "ddp_exception", "ddp_inside", "independent_models", "ddp_compiled",
        "fsdp2", "fsdp2_clip", "fsdp2_every",
    ],
)  # fmt: skip
def test_gradients_equal_the_full_batch_over_all_ranks(ranks, name):
    for result in results_of(ranks, name):
        assert result["errors"]
        assert max(result["errors"]) < CLOSE


def test_a_plain_ddp_loop_is_bit_equal_to_the_hand_written_one(ranks):
    assert all(result["equal"] for result in results_of(ranks, "ddp_plain"))


def test_each_window_is_exchanged_once(ranks):
    for result in results_of(ranks, "ddp_windows"):
        assert result["calls"] == [1, 2, 3]  # one bucket, three windows of 3, 3 and 1
    for result in results_of(ranks, "ddp_every"):
        assert result["calls"] == [3, 6, 7]


def test_the_sync_switch_is_given_back_after_an_exception(ranks):
    assert all(result["switch"] for result in results_of(ranks, "ddp_exception"))


def test_a_rank_that_drops_its_part_does_not_hold_the_others_back(ranks):
    for result in results_of(ranks, "ddp_break_and_drop"):
        assert not result["skipped"]
        assert "before the last backward" in result["said"]


def test_weights_of_zero_on_all_ranks_raise_on_all_ranks(ranks):
    assert all("add up to 0" in result["said"] for result in results_of(ranks, "ddp_all_zero"))


@pytest.mark.parametrize(
    ("name", "limit"),
    [("ddp_unused", 1e-6), ("ddp_gan", 1e-6), ("ddp_lbfgs", 1e-4), ("fsdp2_train", 1e-5)],
)
def test_parameters_equal_those_of_one_process_with_all_data(ranks, name, limit):
    assert all(result["difference"] < limit for result in results_of(ranks, name))


def test_batch_norm_buffers_and_skips_go_together(ranks):
    assert all(result["same"] for result in results_of(ranks, "ddp_batch_norm"))


def test_several_ranks_without_models_are_refused(ranks):
    assert all("models=[model]" in result["said"] for result in results_of(ranks, "no_models"))


def test_the_norm_of_sharded_gradients_is_that_of_the_whole(ranks):
    for result in results_of(ranks, "fsdp2_clip"):
        assert result["norms"] == pytest.approx([1.0] * 3, rel=1e-5)


def test_what_fsdp2_cannot_do_is_said(ranks):
    for result in results_of(ranks, "fsdp2_misuse"):
        arena, saving, skipping = result["said"]
        assert "arena" in arena
        assert "sync_every" in saving
        assert "weight=0" in skipping


def test_a_rank_with_fewer_windows_is_named_when_the_time_is_up(tmp_path):
    first, second = launch(tmp_path, ["fewer_windows"])
    assert "same number of windows" in first["fewer_windows"]["said"]
    assert "init_process_group(timeout" in first["fewer_windows"]["said"]
    assert second["fewer_windows"]["said"] == ""
