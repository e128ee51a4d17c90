"""The puzzle is graded by the machine, and the machine agrees with PyTorch."""

import itertools

import pytest

from zerograd.lab.page import load_recorded
from zerograd.lab.verdicts import CALLS, SCALER_CALLS, machine_codes, phase_moves
from zerograd.lifecycle.state import Phase

RECORDED = load_recorded()
PLAIN = RECORDED["orders"]
SCALER = RECORDED["scaler_orders"]


def test_all_orders_are_there():
    orders = [*itertools.permutations(CALLS), *itertools.permutations(CALLS[1:])]
    assert set(PLAIN["rows"]) == {" ".join(order) for order in orders}
    assert len(SCALER["table"]) == 720


@pytest.mark.parametrize("order", PLAIN["rows"])
def test_the_recorded_grade_is_the_machines(order):
    assert machine_codes(tuple(order.split()), PLAIN["rounds"]) == PLAIN["rows"][order]["codes"]


def test_the_recorded_grades_of_the_scaler_loop_are_the_machines():
    names = dict(zip(SCALER["letters"], SCALER_CALLS, strict=True))
    for word, index in SCALER["table"].items():
        order = tuple(names[letter] for letter in word)
        assert machine_codes(order, PLAIN["rounds"]) == SCALER["verdicts"][index]["codes"], word


@pytest.mark.parametrize("order", PLAIN["rows"])
def test_machine_and_torch_agree_on_every_plain_order(order):
    row = PLAIN["rows"][order]
    if row["error"]:
        return  # PyTorch stops it; there is nothing to judge
    if row["right"] or row["one_short"]:
        assert row["codes"] == []
    elif row["learns_nothing"]:
        assert row["codes"] == ["ZG102"]
    else:
        assert row["codes"] == ["ZG101"]


def test_no_right_order_of_the_scaler_loop_is_blamed_and_no_other_is_praised():
    right = {word for word, index in SCALER["table"].items() if SCALER["verdicts"][index]["right"]}
    assert right == {"cbupsd", "bupscd", "bupsdc"}
    for word, index in SCALER["table"].items():
        verdict = SCALER["verdicts"][index]
        if word in right:
            assert verdict["codes"] == [], word
        else:
            assert verdict["codes"] or verdict["error"], word


def test_the_phases_of_the_bucket_panel_are_the_machines():
    moves = phase_moves()
    assert set(moves) == {phase.value for phase in Phase}
    assert moves["spent"] == {"b": "stale", "s": "spent", "c": "empty"}
