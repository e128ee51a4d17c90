"""The solution passes every check, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import ragged_accumulation  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import checks_of, first_failure  # noqa: E402

EXERCISE = find("ragged-accumulation")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
def test_the_solution_passes(check):
    check(ragged_accumulation)


def _train(optimizer, weighted_losses, window):
    """Step every `window` losses and once more for what is left."""
    optimizer.zero_grad()
    updates = count = 0
    for loss in weighted_losses:
        loss.backward()
        count += 1
        if count % window == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    if count % window:
        optimizer.step()
        optimizer.zero_grad()
        updates += 1
    return updates


def not_divided(model, optimizer, loss_fn, micro_batches, window):
    return _train(optimizer, (loss_fn(model(x), y) for x, y in micro_batches), window)


def divided_by_the_window(model, optimizer, loss_fn, micro_batches, window):
    return _train(optimizer, (loss_fn(model(x), y) / window for x, y in micro_batches), window)


def divided_by_the_count(model, optimizer, loss_fn, micro_batches, window):
    pieces = list(micro_batches)
    full = len(pieces) // window * window
    counts = [window if index < full else len(pieces) - full for index in range(len(pieces))]
    losses = (loss_fn(model(x), y) / k for (x, y), k in zip(pieces, counts, strict=True))
    return _train(optimizer, losses, window)


def drops_the_tail(model, optimizer, loss_fn, micro_batches, window):
    updates = 0
    optimizer.zero_grad()
    for index, (x, y) in enumerate(micro_batches):
        (loss_fn(model(x), y) / window).backward()
        if (index + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    return updates


def clears_every_micro_batch(model, optimizer, loss_fn, micro_batches, window):
    updates = 0
    for index, (x, y) in enumerate(micro_batches):
        optimizer.zero_grad()
        (loss_fn(model(x), y) / window).backward()
        if (index + 1) % window == 0:
            optimizer.step()
            updates += 1
    return updates


def guard_off_by_one(model, optimizer, loss_fn, micro_batches, window):
    updates = 0
    optimizer.zero_grad()
    for index, (x, y) in enumerate(micro_batches):
        (loss_fn(model(x), y) / window).backward()
        if index % window == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    return updates


def never_clears(model, optimizer, loss_fn, micro_batches, window):
    class Kept:
        step = optimizer.step

        def zero_grad(self):
            pass

    return ragged_accumulation.train_epoch(model, Kept(), loss_fn, micro_batches, window)


def starts_with_what_is_there(model, optimizer, loss_fn, micro_batches, window):
    kept = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    pieces = list(micro_batches)
    for start in range(0, len(pieces), window):
        held = pieces[start : start + window]
        samples = sum(len(x) for x, _ in held)
        for p, grad in zip(model.parameters(), kept, strict=True):
            p.grad, kept = grad, [None] * len(kept)
        for x, y in held:
            (loss_fn(model(x), y) * (len(x) / samples)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(pieces) // window)


def leaves_the_last_window(model, optimizer, loss_fn, micro_batches, window):
    pieces = list(micro_batches)
    for start in range(0, len(pieces), window):
        held = pieces[start : start + window]
        samples = sum(len(x) for x, _ in held)
        optimizer.zero_grad()
        for x, y in held:
            (loss_fn(model(x), y) * (len(x) / samples)).backward()
        optimizer.step()
    return -(-len(pieces) // window)


def forgets_the_division(model, optimizer, loss_fn, micro_batches, window):
    def summed(outputs, targets):
        return loss_fn(outputs, targets) * len(outputs)

    return not_divided(model, optimizer, summed, micro_batches, window)


def divides_twice(model, optimizer, loss_fn, micro_batches, window):
    def smaller(outputs, targets):
        return loss_fn(outputs, targets) / window

    return ragged_accumulation.train_epoch(model, optimizer, smaller, micro_batches, window)


WRONG = {
    not_divided: "added up and not weighed",
    divided_by_the_window: "right only in a full window",
    divided_by_the_count: "Every micro-batch counts the same",
    forgets_the_division: "the division by N is missing",
    divides_twice: "n / N is enough",
    drops_the_tail: "make 3 updates, the answer was 2",
    clears_every_micro_batch: "off by",
    guard_off_by_one: "off by",
    never_clears: "off by",
    starts_with_what_is_there: "what was in p.grad before the call",
    leaves_the_last_window: "not empty when the epoch ends",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(wrong):
    failure = first_failure(EXERCISE, SimpleNamespace(train_epoch=wrong))
    assert failure is not None, f"{wrong.__name__} passes every check"
    assert WRONG[wrong] in failure.message
