"""Two real gloo ranks: DDP with and without no_sync, bucket views, FSDP1 and FSDP2."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.ranks_meet import said_by_ranks

pytest.importorskip("torch")

RANKS = Path(__file__).with_name("ranks_under_test.py")
SILENT = [
    "ddp",
    "bucket view",
    "unused parameters",
    "no_sync",
    "no_sync, bucket view",
    "tensor parallel",
    "sharded scaler",
    "sharded scaler, original parameters",
    "original parameters",
    "original parameters, no_sync",
    "original parameters, two optimizers",
    "fsdp",
    "fsdp without sync",
]
FAULTY = {
    "ddp without clear": ["ZG101"],
    "bucket view without clear": ["ZG101"],
    "every micro-batch": ["ZG505"],
    "backward outside": ["ZG601"],
    "raw module": ["ZG601"],
    "tensor parallel without clear": ["ZG101"],
    "sharded scaler without clear": ["ZG101"],
    "sharded scaler, not unscaled": ["ZG301"],
    "original parameters without clear": ["ZG101"],
    "original parameters, some frozen, without clear": ["ZG101"],
    "original parameters, no_sync, without clear": ["ZG101"],
    "fsdp without clear": ["ZG101"],
}


@pytest.fixture(scope="module")
def found():
    """Run all trainings on two ranks once; return what each rank found."""
    names = [*SILENT, *FAULTY]
    results = {}
    for out in said_by_ranks([sys.executable, str(RANKS), *names], 2, deadline=240):
        number, _, text = out.strip().splitlines()[-1].partition(" ")
        results[int(number)] = json.loads(text)
    return results


@pytest.mark.parametrize("name", SILENT)
def test_right_training_on_two_ranks_is_silent(found, name):
    for rank in (0, 1):
        assert [c for c in found[rank][name]["codes"] if c not in ("ZG503", "ZG505")] == []


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_on_two_ranks_is_found_by_each(found, name):
    for rank in (0, 1):
        assert found[rank][name]["codes"] == FAULTY[name]
        assert found[rank][name]["rank"] == [rank]


def test_the_two_kinds_of_desync_are_told_apart(found):
    (outside,) = found[0]["backward outside"]["messages"]
    (raw,) = found[0]["raw module"]["messages"]
    assert "no_sync" in outside
    assert "past the wrapper" in raw


def test_what_fsdp_hides_is_said_once(found):
    (said,) = found[0]["fsdp without sync"]["not checked"]
    assert "FSDP2" in said


def test_what_fsdp_does_not_hide_is_not_said(found):
    for name in ("tensor parallel", "original parameters", "sharded scaler"):
        assert found[0][name]["not checked"] == []
