"""Turns that come by the same calls and fill now these experts, now those."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

import zerograd  # noqa: E402
from zerograd.runtime.feeding import Feeding  # noqa: E402
from zerograd.runtime.kindred import SURE  # noqa: E402

EXPERTS = 4
LATE = 400  # turns, after which the loop is a habit


class Mixture(torch.nn.Module):
    """A trunk that always learns, and experts of which some do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.trunk = torch.nn.Linear(3, 3)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(3, 1) for _ in range(EXPERTS))
        self.choices = random.Random(0)

    def loss(self):
        chosen = [each for each in self.experts if self.choices.random() < 0.5]
        hidden = self.trunk(torch.randn(2, 3))
        return sum((expert(hidden).pow(2).mean() for expert in chosen), hidden.pow(2).mean())


def found(turn, turns=LATE + 40, **kwargs):
    """Return (code, turn) of what is found in a loop whose `turn` takes (model, opt, n)."""
    model = Mixture()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    told = []
    now = 0
    with zerograd.watch(
        policy="collect", on_finding=lambda each: told.append((each.rule.code, now)), **kwargs
    ):
        for now in range(turns):
            turn(model, opt, now)
    return told


def clear_first(model, opt, n, **how):
    opt.zero_grad(**how)
    model.loss().backward()
    opt.step()


def test_turns_of_a_mixture_of_experts_are_ridden(monkeypatch):
    rides = []
    begin = Feeding._begin_ride
    monkeypatch.setattr(
        Feeding, "_begin_ride", lambda self, ring: (rides.append(ring.varying), begin(self, ring))
    )
    found(clear_first, 4 * SURE)
    assert len(rides) > 3
    assert all(len(varying) == EXPERTS for varying in rides)


@pytest.mark.parametrize("to_none", [True, False])
def test_a_right_loop_stays_silent_on_and_after_such_rides(to_none):
    def clear_last(model, opt, n):
        model.loss().backward()
        opt.step()
        opt.zero_grad(set_to_none=to_none)

    def changing(model, opt, n):
        if n % 37 == 0:  # gradients that are looked at, and thrown away by the clear to come
            model.loss().backward()
            sum(float(p.grad.norm()) for p in model.parameters() if p.grad is not None)
        if n == LATE:
            opt.zero_grad()
        (clear_last if n >= LATE else clear_first)(model, opt, n)

    def to_zero(model, opt, n):
        clear_first(model, opt, n, set_to_none=to_none)

    for turn in (clear_last, to_zero, changing):
        assert found(turn, show_notes=True) == []


def test_a_clear_that_stops_is_told_within_two_turns():
    def turn(model, opt, n):
        if n < LATE:
            opt.zero_grad()
        model.loss().backward()
        opt.step()

    assert [(code, now - LATE <= 2) for code, now in found(turn)] == [("ZG101", True)]


def test_a_clear_of_the_trunk_alone_is_told_once_it_takes_the_place_of_the_whole():
    def turn(model, opt, n):
        (opt if n < LATE else model.trunk).zero_grad()
        model.loss().backward()
        opt.step()

    assert [(code, now - LATE <= 16) for code, now in found(turn)] == [("ZG101", True)]


def test_a_clear_too_soon_is_told_as_soon_as_no_guard_can_be_meant():
    def turn(model, opt, n):
        if n < LATE:
            opt.zero_grad()
        model.loss().backward()
        if n >= LATE:
            opt.zero_grad()
        opt.step()

    assert [(code, now - LATE < 16) for code, now in found(turn)] == [("ZG102", True)]


def test_a_clear_by_hand_of_what_is_filled_in_every_turn_is_told_within_two_turns():
    def turn(model, opt, n):
        opt.zero_grad()
        model.loss().backward()
        if n >= LATE:
            for p in model.parameters():
                p.grad = None
        opt.step()

    assert [(code, now - LATE <= 2) for code, now in found(turn)] == [("ZG102", True)]


def test_where_a_ride_ends_nothing_is_said_of_what_nobody_has_looked_at():
    model = Mixture()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = zerograd.watch(policy="collect")
    with watch:
        for n in range(4 * SURE):
            clear_first(model, opt, n)
            if n < 3 * SURE:
                continue
            recorder = watch._recorder
            known = {each.name for each in recorder.partition.buckets if each.gradients(1)}
            recorder.end_ride()
            node = recorder.memo.node
            assert node.filled <= known
            assert known <= node.filled | node.unknown


def test_training_is_bit_equal_on_such_rides():
    def trained(watched):
        model = Mixture()
        opt = torch.optim.Adam(model.parameters(), lr=0.01)
        torch.manual_seed(1)
        if watched:
            with zerograd.watch(policy="raise"):
                for n in range(4 * SURE):
                    clear_first(model, opt, n)
        else:
            for n in range(4 * SURE):
                clear_first(model, opt, n)
        return model.state_dict()

    plain, watched = trained(False), trained(True)
    assert all(torch.equal(plain[name], watched[name]) for name in plain)
