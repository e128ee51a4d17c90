"""Eight things a clear of a list must do."""

from __future__ import annotations

import copy
import math
from typing import Any

from zerograd.learn.grading import Wrong


def _cleared(solution: Any, grads: list[float]) -> list[float]:
    """Call the solution on a copy and hold the answer to the shape all checks need."""
    answer = solution.zero_grad(list(grads))
    if answer is None:
        raise Wrong(f"zero_grad({_short(grads)}) returned None: is a `return` missing?")
    if type(answer) is not list:
        raise Wrong(
            f"zero_grad({_short(grads)}) returned a {type(answer).__name__}, not a list: "
            f"{_short(answer)}."
        )
    if len(answer) != len(grads):
        raise Wrong(
            f"zero_grad({_short(grads)}) has {len(grads)} values going in "
            f"and {len(answer)} coming out: {_short(answer)}."
        )
    return answer


def _demand_zeros(grads: list[float], answer: list[float]) -> None:
    for given, value in zip(grads, answer, strict=True):
        if isinstance(value, float) and math.isnan(value):
            raise Wrong(f"{given!r} became nan: arithmetic keeps a nan alive, so write the 0.0.")
        if value != 0:
            raise Wrong(f"{given!r} became {value!r} in zero_grad({_short(grads)}), not 0.0.")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:28]} ... {text[-28:]}"


def check_the_example(solution: Any) -> None:
    """[3.0, -5.0] gives [0.0, 0.0]"""
    _demand_zeros([3.0, -5.0], _cleared(solution, [3.0, -5.0]))


def check_the_length(solution: Any) -> None:
    """any length works: none, one, a thousand"""
    for grads in ([], [7.5], [0.1] * 1000):
        _demand_zeros(grads, _cleared(solution, grads))


def check_equal_and_tiny_values(solution: Any) -> None:
    """equal, tiny, huge and already zero values count like any other"""
    grads = [2.0, 2.0, 5e-324, -1e-300, 1.7e308, 0.0, 1.0]
    _demand_zeros(grads, _cleared(solution, grads))


def check_nan_and_infinity(solution: Any) -> None:
    """NaN and the infinities are cleared too"""
    grads = [math.nan, math.inf, -math.inf, 1.0]
    _demand_zeros(grads, _cleared(solution, grads))


def check_floats(solution: Any) -> None:
    """each value is a float, also where an int went in"""
    grads = [3, -5, 2.5]
    for value in _cleared(solution, grads):
        if type(value) is not float:
            raise Wrong(f"got {value!r}, which is of type {type(value).__name__}: write 0.0.")


def check_the_sign(solution: Any) -> None:
    """the zeros are 0.0, not -0.0"""
    for value in _cleared(solution, [-3.0, 3.0, -0.0]):
        if math.copysign(1.0, value) < 0:
            raise Wrong("got -0.0, the zero that a product with a negative number leaves.")


def check_input_untouched(solution: Any) -> None:
    """the list that went in keeps its values"""
    grads = [1.0, -2.0, math.inf]
    before = copy.copy(grads)
    solution.zero_grad(grads)
    if grads != before:
        raise Wrong(f"the caller's list was {before} and is now {_short(grads)}: return a new one.")


def check_a_new_list(solution: Any) -> None:
    """each call returns a list of its own, even for an empty or an all-zero one"""
    for grads in ([], [0.0], [0.0, 0.0], [1.0, 2.0]):
        first, second = solution.zero_grad(grads), solution.zero_grad(grads)
        if first is grads:
            raise Wrong(f"zero_grad({grads}) handed back the very list it was given.")
        if first is second:
            raise Wrong("two calls handed back the same list: writing into one changes the other.")
