"""Lists and arrays of numbers: a new one of zeros, the input untouched, no torch."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerograd import zero_grad

numbers = st.one_of(st.integers(), st.floats(), st.booleans(), st.fractions(), st.complex_numbers())


@given(st.lists(numbers))
def test_any_list_of_numbers_gives_as_many_float_zeros(grads):
    before = list(grads)
    identities = [id(grad) for grad in grads]
    cleared = zero_grad(grads)
    assert cleared is not grads
    assert len(cleared) == len(before)
    assert all(type(value) is float and value == 0.0 for value in cleared)
    assert all(math.copysign(1.0, value) == 1.0 for value in cleared), "no negative zeros"
    assert [id(grad) for grad in grads] == identities


def test_the_new_list_is_its_own():
    grads = [1.0, 2.0]
    cleared = zero_grad(grads)
    cleared[0] = 9.0
    assert grads == [1.0, 2.0]
    assert zero_grad([]) == [] and zero_grad([]) is not zero_grad([])


def test_numbers_of_every_kind_count():
    kinds = [1, -2.5, True, Fraction(1, 3), Decimal("0.1"), 2j, np.float32(1), np.int64(3)]
    assert zero_grad(kinds) == [0.0] * 8


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "bool", "complex64"])
def test_an_array_is_answered_with_a_new_one_of_its_shape_and_dtype(dtype):
    array = np.ones((2, 3), dtype=dtype)
    cleared = zero_grad(array)
    assert cleared is not array and not np.shares_memory(cleared, array)
    assert cleared.shape == (2, 3) and cleared.dtype == array.dtype
    assert not cleared.any() and array.all()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (None, "got None"),
        (3.0, "got a float"),
        (False, "set_to_none=False"),
        ("abc", "got a str"),
        (b"abc", "got a bytes"),
        ((1.0, 2.0), "got a tuple whose element 0 is a float"),
        (range(3), "zero_grad(list(values))"),
        (iter([1.0]), "zero_grad(list(values))"),
        ({"w": 1.0}, "values()"),
        ([1.0, None], "element 1 is None"),
        ([1.0, "2.0"], "element 1 is a str"),
        (["1.0"], "element 0 is a str"),
        ([[1.0], [2.0]], "list of numbers at index 0"),
        ([1.0, [2.0]], "element 1 is a list"),
        (object(), "got an object"),
        (np.array(["a"]), "dtype <U1"),
        (np.array([object()]), "dtype object"),
        ([np.ones(2)], "pass it alone"),
    ],
)
def test_anything_else_is_a_type_error_that_says_what_it_got(bad, said):
    with pytest.raises(TypeError) as caught:
        zero_grad(bad)
    assert said in str(caught.value)


def test_no_target_is_a_type_error():
    with pytest.raises(TypeError, match="needs a target"):
        zero_grad()


def test_several_lists_at_once_are_refused_since_only_one_can_be_answered():
    with pytest.raises(TypeError, match="pass it alone"):
        zero_grad([1.0], [2.0])


def test_lists_are_cleared_without_importing_torch_or_numpy():
    code = (
        "import sys, zerograd\n"
        "assert zerograd.zero_grad([1, float('nan'), float('inf')]) == [0.0, 0.0, 0.0]\n"
        "print(sorted({'torch', 'numpy'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
