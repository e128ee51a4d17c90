"""The solution passes every check on two ranks, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import no_sync_window  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import first_failure  # noqa: E402

EXERCISE = find("no-sync-window")

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
    "a slip": ("        loss_fn(model(micro_batches[9][0]))\n", "IndexError"),
}


def test_the_solution_passes_on_two_ranks():
    # two processes import torch for each solution, so all checks share one run
    assert first_failure(EXERCISE, no_sync_window) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(name, tmp_path):
    body, says = WRONG[name]
    file = tmp_path / "wrong.py"
    file.write_text(f"def train_window(model, optimizer, loss_fn, micro_batches):\n{body}")
    failure = first_failure(EXERCISE, SimpleNamespace(__file__=str(file)))
    assert failure is not None, f"{name!r} passes every check"
    assert says in failure.message
