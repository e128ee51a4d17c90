"""The solution passes every check, and none of the wrong ones does."""

from types import SimpleNamespace

import pytest
import zero_gradients

import zerograd
from zerograd.learn.exercise import find
from zerograd.learn.grading import checks_of, first_failure

EXERCISE = find("zero-gradients")


@pytest.mark.parametrize("check", checks_of(EXERCISE), ids=lambda check: check.__name__)
@pytest.mark.parametrize("solution", [zero_gradients, zerograd], ids=["module", "package"])
def test_the_solution_passes(solution, check):
    check(solution)


def in_place(grads):
    grads[:] = [0.0] * len(grads)
    return grads


def cleared_after_copying_wrongly(grads):
    for index in range(len(grads)):
        grads[index] = 0.0
    return list(grads)


def skips_equal_values(grads):
    return [0.0 for _ in set(grads)]


def only_what_is_not_zero(grads):
    return [0.0 for grad in grads if grad]


def below_a_threshold(grads):
    return [0.0 if abs(grad) > 1e-12 else grad for grad in grads]


def forgets_the_last(grads):
    return [0.0] * (len(grads) - 1) + grads[-1:]


def same_list_every_time(grads, kept={}):  # noqa: B006
    return kept.setdefault(len(grads), [0.0] * len(grads))


def hands_back_what_is_already_zero(grads):
    return grads if not any(grads) else [0.0] * len(grads)


WRONG = {
    "a constant answer": (lambda grads: [0.0, 0.0], "0 values going in and 2 coming out"),
    "times zero": (lambda grads: [grad * 0 for grad in grads], "became nan"),
    "minus itself": (lambda grads: [grad - grad for grad in grads], "became nan"),
    "integers": (lambda grads: [0] * len(grads), "type int"),
    "one number": (lambda grads: 0.0, "returned a float, not a list"),
    "a tuple": (lambda grads: (0.0,) * len(grads), "returned a tuple, not a list"),
    "nothing": (lambda grads: None, "is a `return` missing"),
    "the input": (lambda grads: grads, "not 0.0"),
    "negative zeros": (lambda grads: [-0.0] * len(grads), "got -0.0"),
    "in place": (in_place, "return a new one"),
    "a copy, too late": (cleared_after_copying_wrongly, "return a new one"),
    "a set of values": (skips_equal_values, "coming out"),
    "only what is not zero": (only_what_is_not_zero, "coming out"),
    "above a threshold": (below_a_threshold, "not 0.0"),
    "all but the last": (forgets_the_last, "not 0.0"),
    "one list for all": (same_list_every_time, "two calls handed back the same list"),
    "its own input": (hands_back_what_is_already_zero, "the very list it was given"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_solution_is_caught_with_a_message_that_helps(name):
    wrong, says = WRONG[name]
    failure = first_failure(EXERCISE, SimpleNamespace(zero_grad=wrong))
    assert failure is not None, f"{name!r} passes every check"
    assert says in failure.message
