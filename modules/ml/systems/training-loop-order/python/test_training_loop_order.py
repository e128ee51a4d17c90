"""The solution passes every check, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import training_loop_order  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import checks_of, first_failure  # noqa: E402

EXERCISE = find("training-loop-order")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
def test_the_solution_passes(check):
    check(training_loop_order)


def never_clears(model, optimizer, loss_fn, batches):
    losses = []
    for x, y in batches:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def clears_between_backward_and_step(model, optimizer, loss_fn, batches):
    for x, y in batches:
        loss_fn(model(x), y).backward()
        optimizer.zero_grad()
        optimizer.step()


def steps_before_backward(model, optimizer, loss_fn, batches):
    losses = []
    for x, y in batches:
        optimizer.step()
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        losses.append(loss.item())
    return losses


def names_the_clear_without_calling(model, optimizer, loss_fn, batches):
    losses = []
    for x, y in batches:
        optimizer.zero_grad  # noqa: B018
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def clears_once(model, optimizer, loss_fn, batches):
    optimizer.zero_grad()
    return never_clears(model, optimizer, loss_fn, batches)


def clears_after_the_step_only(model, optimizer, loss_fn, batches):
    losses = []
    for x, y in batches:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def keeps_the_graph(model, optimizer, loss_fn, batches):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


def reports_the_loss_after(model, optimizer, loss_fn, batches):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        losses.append(loss_fn(model(x), y).item())
    return losses


def steps_twice(model, optimizer, loss_fn, batches):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.step()
        losses.append(loss.item())
    return losses


def measures_the_batches_first(model, optimizer, loss_fn, batches):
    if not list(batches):
        return []
    return training_loop_order.train(model, optimizer, loss_fn, batches)


WRONG = {
    never_clears: "older gradients are still in p.grad",
    clears_between_backward_and_step: "step() saw no gradients",
    steps_before_backward: "update of a single batch is off",
    names_the_clear_without_calling: "older gradients are still in p.grad",
    clears_once: "older gradients are still in p.grad",
    clears_after_the_step_only: "clear before the first backward",
    keeps_the_graph: "loss.item()",
    reports_the_loss_after: "differ from the true ones",
    steps_twice: "one backward() and one step()",
    measures_the_batches_first: "read the batches only once",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(wrong):
    failure = first_failure(EXERCISE, SimpleNamespace(train=wrong))
    assert failure is not None, f"{wrong.__name__} passes every check"
    assert WRONG[wrong] in failure.message
