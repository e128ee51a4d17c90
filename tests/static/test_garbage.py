"""The garbage collector is held off while files are checked, and is afterwards as it was found."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from zerograd import check_paths
from zerograd.static.garbage import Sweeper


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_the_collector_is_off_while_paths_are_checked_and_on_afterwards(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("opt.zero_grad()\nloss.backward()\nopt.step()\n")
    seen: list[bool] = []
    monkeypatch.setattr(Sweeper, "file_done", lambda self: seen.append(gc.isenabled()))
    gc.enable()

    check_paths(tmp_path)

    assert seen == [False]
    assert gc.isenabled()


def test_a_collector_that_the_caller_switched_off_stays_off(tmp_path):
    gc.disable()
    check_paths(tmp_path)
    assert not gc.isenabled()


def test_what_the_caller_froze_stays_frozen(tmp_path):
    gc.freeze()
    check_paths(tmp_path)
    assert gc.get_freeze_count() > 0


def test_nothing_of_ours_stays_frozen(tmp_path):
    check_paths(tmp_path)
    assert gc.get_freeze_count() == 0
