"""The solution passes every check on two ranks, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import no_sync_window  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.exercises.no_sync_window.checks import run_on_ranks  # noqa: E402
from zerograd.learn.grading import first_failure  # noqa: E402

EXERCISE = find("no-sync-window")
RAISES = "a slip"  # ends both processes, so it gets its own

WRONG = {
    "one exchange per micro-batch": (
        """
        for x, y in micro_batches:
            (loss_fn(model(x), y) / len(micro_batches)).backward()
        optimizer.step()
        optimizer.zero_grad()
        """,
        "took 12 all-reduces",
    ),
    "no exchange at all": (
        """
        with model.no_sync():
            for x, y in micro_batches:
                (loss_fn(model(x), y) / len(micro_batches)).backward()
        optimizer.step()
        optimizer.zero_grad()
        """,
        "are off by",
    ),
    "not divided": (
        """
        for index, (x, y) in enumerate(micro_batches):
            model.require_backward_grad_sync = index == len(micro_batches) - 1
            loss_fn(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        """,
        "are off by",
    ),
    "not cleared at the end": (
        """
        optimizer.zero_grad()
        for index, (x, y) in enumerate(micro_batches):
            model.require_backward_grad_sync = index == len(micro_batches) - 1
            (loss_fn(model(x), y) / len(micro_batches)).backward()
        optimizer.step()
        """,
        "who clears it",
    ),
    RAISES: ("        loss_fn(model(micro_batches[9][0]))\n", "IndexError"),
}


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    """Every wrong solution as a file, all of them run by the same two processes.

    Starting two processes that import torch takes longer than all that they then do.
    """
    files = {}
    for name, (body, _) in WRONG.items():
        files[name] = tmp_path_factory.mktemp("wrong") / "wrong.py"
        head = "def train_window(model, optimizer, loss_fn, micro_batches):"
        files[name].write_text(f"{head}\n{body}", encoding="utf-8")
    run_on_ranks(no_sync_window.__file__, *(str(files[name]) for name in WRONG if name != RAISES))
    return files


def test_the_solution_passes_on_two_ranks(attempts):
    assert first_failure(EXERCISE, no_sync_window) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(name, attempts):
    failure = first_failure(EXERCISE, SimpleNamespace(__file__=str(attempts[name])))
    assert failure is not None, f"{name!r} passes every check"
    assert WRONG[name][1] in failure.message
