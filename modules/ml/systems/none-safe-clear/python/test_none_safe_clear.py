"""The solution passes every check, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import none_safe_clear  # noqa: E402

from zerograd.learn.exercise import find  # noqa: E402
from zerograd.learn.grading import checks_of, first_failure  # noqa: E402

EXERCISE = find("none-safe-clear")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
def test_the_solution_passes(check):
    check(none_safe_clear)


def unguarded(parameters):
    for p in parameters:
        p.grad.zero_()


def to_none(parameters):
    for p in parameters:
        p.grad = None


def makes_absent_ones(parameters):
    for p in parameters:
        p.grad = torch.zeros_like(p)


def a_new_tensor(parameters):
    for p in parameters:
        if p.grad is not None:
            p.grad = torch.zeros_like(p)


def times_zero(parameters):
    with torch.no_grad():
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(0)


def stops_at_the_first_absent(parameters):
    for p in parameters:
        if p.grad is None:
            break
        p.grad.zero_()


def keeps_the_graph(parameters):
    for p in parameters:
        if p.grad is not None:
            p.grad.zero_()


def clears_the_weights(parameters):
    with torch.no_grad():
        for p in parameters:
            if p.grad is not None:
                p.grad.detach_().zero_()
                p.zero_()


def reads_the_generator_twice(parameters):
    if all(p.grad is not None for p in parameters):
        for p in parameters:
            p.grad.detach_().zero_()


WRONG = {
    unguarded: "'NoneType' object has no attribute",
    to_none: "asked to keep the buffer",
    makes_absent_ones: "leave an absent one absent",
    a_new_tensor: "write the zeros into the one that was there",
    times_zero: "nan or inf survived",
    stops_at_the_first_absent: "did the loop stop at the absent one",
    keeps_the_graph: "detach_()",
    clears_the_weights: "clear p.grad, not p",
    reads_the_generator_twice: "still holds",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(wrong):
    failure = first_failure(EXERCISE, SimpleNamespace(clear=wrong))
    assert failure is not None, f"{wrong.__name__} passes every check"
    assert WRONG[wrong] in failure.message
