"""The solution passes every check, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import poisoned_buffer  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import checks_of, first_failure  # noqa: E402

EXERCISE = find("poisoned-buffer")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
def test_the_solution_passes(check):
    check(poisoned_buffer)


def finite(model):
    return all(torch.isfinite(p.grad).all() for p in model.parameters())


def clears_only_after_a_step(model, optimizer, loss_fn, batches):
    skipped = 0
    for x, y in batches:
        loss_fn(model(x), y).backward()
        if not finite(model):
            skipped += 1
            continue
        optimizer.step()
        optimizer.zero_grad()
    return skipped


def times_zero(model, optimizer, loss_fn, batches):
    skipped = 0
    for x, y in batches:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(0)
        loss_fn(model(x), y).backward()
        if finite(model):
            optimizer.step()
        else:
            skipped += 1
    return skipped


def no_guard(model, optimizer, loss_fn, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    return 0


def looks_at_the_loss(model, optimizer, loss_fn, batches):
    skipped = 0
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        if not torch.isfinite(loss):
            skipped += 1
            continue
        loss.backward()
        optimizer.step()
    return skipped


def replaces_the_bad_values(model, optimizer, loss_fn, batches):
    skipped = 0
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        if not finite(model):
            skipped += 1
            for p in model.parameters():
                p.grad.nan_to_num_(0, 0, 0)
        optimizer.step()  # momentum goes on although the batch was bad
    return skipped


def steps_on_zeros(model, optimizer, loss_fn, batches):
    skipped = 0
    for x, y in batches:
        optimizer.zero_grad(set_to_none=False)
        loss_fn(model(x), y).backward()
        if not finite(model):
            skipped += 1
            optimizer.zero_grad(set_to_none=False)
        optimizer.step()
    return skipped


def looks_for_nan_only(model, optimizer, loss_fn, batches):
    skipped = 0
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        if any(p.grad.isnan().any() and not p.grad.isinf().any() for p in model.parameters()):
            skipped += 1
            continue
        optimizer.step()
    return skipped


def stops_at_the_bad_one(model, optimizer, loss_fn, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        if not finite(model):
            return 1
        optimizer.step()
    return 0


def counts_nothing(model, optimizer, loss_fn, batches):
    poisoned_buffer.train(model, optimizer, loss_fn, batches)


WRONG = {
    clears_only_after_a_step: "the NaN stayed in p.grad",
    times_zero: "the NaN stayed in p.grad",
    no_guard: "it says 0 were skipped",
    looks_at_the_loss: "finite loss and NaN gradients",
    replaces_the_bad_values: "as if the bad batch had not been there",
    steps_on_zeros: "as if the bad batch had not been there",
    looks_for_nan_only: "2 batches of 6 are bad",
    stops_at_the_bad_one: "as if the bad batch had not been there",
    counts_nothing: "it says None were skipped",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(wrong):
    failure = first_failure(EXERCISE, SimpleNamespace(train=wrong))
    assert failure is not None, f"{wrong.__name__} passes every check"
    assert WRONG[wrong] in failure.message
