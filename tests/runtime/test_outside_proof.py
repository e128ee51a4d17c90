"""What is said of other people's programs is what was measured, and what was measured is right."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from benchmarks.outside import trainings
from benchmarks.outside.programs import PROGRAMS
from benchmarks.outside.table import PAGE, RESULTS, page_of
from benchmarks.outside.way import Way, made
from benchmarks.outside.ways import WAYS_RESULTS, judge, page_with

PROOF: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))["programs"]


def test_the_page_shows_the_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of(PROOF)


def test_every_result_is_of_a_program_of_the_list() -> None:
    assert PROOF
    assert set(PROOF) <= {f"{program.group}: {program.name}" for program in PROGRAMS}


@pytest.mark.parametrize("name", [name for name in PROOF if "why" not in PROOF[name]])
def test_a_program_ends_and_speaks_as_without_us(name: str) -> None:
    result = PROOF[name]
    assert result["plain"] == result["watched"]
    assert result["same"] is not False
    assert sorted({code for code, _, _ in result["findings"]}) == sorted(result["expects"])


WAYS: dict[str, Any] = json.loads(WAYS_RESULTS.read_text(encoding="utf-8"))


def test_the_page_shows_the_ways_to_train() -> None:
    assert WAYS and PAGE.read_text(encoding="utf-8") == page_with(WAYS)


@pytest.mark.parametrize("package", WAYS)
def test_no_way_to_train_is_disturbed_or_called_wrong(package: str) -> None:
    for name, result in WAYS[package]["ways"].items():
        assert result["silent"] and result["same bits"] and result["ZG101"], name
        assert result["ZG102"] or name in ("fake tensors", "meta tensors")


def test_a_way_to_train_is_judged_right_and_wrong() -> None:
    every = {"silent": True, "same bits": True, "ZG101": True, "ZG102": True}
    assert judge(Way("plain", made())) == every
    hidden = judge(Way("clears by itself", made(optimizer=_Clearing)))
    assert hidden["silent"] and hidden["same bits"] and hidden["ZG101"] is False


class _Clearing(torch.optim.SGD):
    """Clears after each step, so that a clear left out is no fault."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, lr=0.01)
        self.register_step_post_hook(lambda optimizer, *_: optimizer.zero_grad())


TRAININGS = trainings.load()


def test_the_page_shows_the_trainings_through_packages() -> None:
    assert TRAININGS and PAGE.read_text(encoding="utf-8") == trainings.page_with(TRAININGS)


@pytest.mark.parametrize("module", TRAININGS)
def test_no_training_through_a_package_is_disturbed_or_called_wrong(module: str) -> None:
    for name, result in TRAININGS[module]["trainings"].items():
        assert result["same"], name
        if result["trains"] is not True:  # nor without us, where it was measured
            assert name in PAGE.read_text(encoding="utf-8"), name
            continue
        assert not {"alarms, right", "alarms, faulty", "failed"} & set(result), name
        assert all(result["faults"].values()), name  # told, if not always within two steps
