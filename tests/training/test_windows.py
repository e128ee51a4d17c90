"""windows(): groups of batches, drawn one by one, the last one maybe short."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerograd import StepError, windows


@given(count=st.integers(0, 40), size=st.integers(1, 9))
def test_every_batch_comes_once_and_in_order(count, size):
    groups = [list(window) for window in windows(range(count), size)]
    assert [batch for group in groups for batch in group] == list(range(count))
    assert all(len(group) == size for group in groups[:-1])
    assert not groups or 1 <= len(groups[-1]) <= size
    assert len(windows(range(count), size)) == len(groups)


def test_a_short_window_knows_it_and_a_full_one_is_not_short():
    seen = []
    for window in windows(iter("abcde"), 2):
        batches = list(window)
        seen.append((batches, window.drawn, window.short))
    assert seen == [(["a", "b"], 2, False), (["c", "d"], 2, False), (["e"], 1, True)]


def test_batches_are_loaded_when_asked_for_and_not_before():
    log = []

    def loader():
        for i in range(5):
            log.append(f"load {i}")
            yield i

    for window in windows(loader(), 2):
        for batch in window:
            log.append(f"use {batch}")
        log.append("update")
    assert log == [
        "load 0", "use 0", "load 1", "use 1", "update",
        "load 2", "use 2", "load 3", "use 3", "update",
        "load 4", "use 4", "update",
    ]  # fmt: skip


def test_break_leaves_the_rest_to_the_next_window():
    groups = []
    for window in windows(range(7), 3):
        group = []
        for batch in window:
            group.append(batch)
            if batch == 1:
                break
        groups.append(group)
    assert groups == [[0, 1], [2, 3, 4], [5, 6]]


def test_each_epoch_starts_anew():
    grouped = windows([1, 2, 3], 2)
    assert [list(w) for w in grouped] == [[1, 2], [3]] == [list(w) for w in grouped]


def test_done_shortens_the_first_window_of_the_first_pass_only():
    grouped = windows([1, 2, 3, 4], 3, done=2)
    assert [list(w) for w in grouped] == [[1], [2, 3, 4]]
    assert [list(w) for w in grouped] == [[1, 2, 3], [4]]


def test_the_listener_hears_which_batch_is_the_last():
    def heard(loader, size, look_ahead):
        out = []
        for window in windows(loader, size):
            window.look_ahead = look_ahead
            window.listen(out.append)
            list(window)
        return out

    expected = [False, True, False, True, True]
    assert heard(range(5), 2, False) == expected  # the length is known
    assert heard(iter(range(5)), 2, True) == expected  # one batch ahead
    assert heard(iter(range(5)), 2, False) == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("size", "kind"), [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_a_window_size_that_makes_no_sense(size, kind):
    with pytest.raises(kind):
        windows([1], size)


@pytest.mark.parametrize("done", [-1, 2, 3])
def test_done_out_of_range(done):
    with pytest.raises(ValueError, match="done"):
        windows([1], 2, done=done)


def test_a_loader_that_is_none():
    with pytest.raises(TypeError, match="iterable"):
        windows(None, 2)


def test_a_window_is_iterated_once():
    for window in windows([1, 2], 2):
        list(window)
        with pytest.raises(StepError, match="iterated once"):
            list(window)


def test_a_window_that_nobody_draws_from_is_an_error_and_not_an_endless_loop():
    with pytest.raises(StepError, match="without drawing"):
        for _ in windows([1, 2], 2):
            pass


def test_a_window_kept_beyond_its_turn():
    kept = []
    with pytest.raises(StepError, match="over"):
        for window in windows(range(6), 3):
            draw = iter(window)
            kept.append((next(draw), draw))
            if len(kept) == 2:
                next(kept[0][1])


def test_an_exception_of_the_loader_is_the_users_own():
    def loader():
        yield 1
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        for window in windows(loader(), 4):
            list(window)


def test_windows_need_no_torch():
    code = (
        "import sys, zerograd; [list(w) for w in zerograd.windows([1], 1)]; "
        "print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
