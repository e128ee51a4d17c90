"""What watching costs, in Python calls a step: seconds belong into the benchmarks."""

from __future__ import annotations

import gc
import sys
import time
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")

import zerograd  # noqa: E402
from zerograd.trace.format import Header  # noqa: E402
from zerograd.trace.writer import TraceWriter  # noqa: E402

STEPS = 256


def calls(context, before=400, *, penalty=False, every=1):
    """Return how many Python functions one step calls, after so many steps.

    Args:
        penalty: differentiate the input too, with a call of the engine that fills nothing.
        every: how many turns of its own a second network waits for, if it is to learn at all.
    """
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    second = torch.nn.Linear(4, 1)
    seldom = torch.optim.SGD(second.parameters(), lr=0.01)
    x, leaf, count = torch.randn(2, 4), torch.randn(2, 4, requires_grad=True), 0

    def counting(frame, event, arg):
        nonlocal count
        count += event == "call"

    def train(steps):
        for n in range(steps):
            optimizer.zero_grad()
            if penalty:
                torch.autograd.grad(model(leaf).sum(), leaf)
            model(x).sum().backward()
            optimizer.step()
            if every > 1 and n % every == 0:
                seldom.zero_grad()
                second(x).sum().backward()
                seldom.step()

    with context:
        train(before)
        gc.collect()
        gc.disable()  # what earlier tests left, and who waits for its end, is no call of a step
        sys.setprofile(counting)
        try:
            train(STEPS)
        finally:
            sys.setprofile(None)
            gc.enable()
    return count / STEPS


def test_a_loop_that_is_a_habit_costs_three_calls_a_step():
    assert calls(zerograd.watch(policy="collect")) - calls(nullcontext()) < 3.25


def test_a_gradient_that_fills_nothing_is_no_call_of_the_habit():
    watched = calls(zerograd.watch(policy="collect"), penalty=True)
    assert watched - calls(nullcontext(), penalty=True) < 6


@pytest.mark.parametrize("every", [2, 5])
def test_turns_that_come_again_together_are_a_habit(every):
    watched = calls(zerograd.watch(policy="collect"), every=every)
    assert watched - calls(nullcontext(), every=every) < 9


@pytest.mark.parametrize(("kept", "most"), [(10_000, 40), (100, 15)])
def test_a_trace_costs_few_calls_more(kept, most, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "zerograd.trace.writer.FLUSHED_EVERY", 600
    )  # all is written by the loop itself, none by the clock
    header = Header("0", time.time())
    writer = TraceWriter(tmp_path / "t.jsonl", header, kept_at_first=kept)
    watched = calls(zerograd.watch(policy="collect", trace=writer))
    writer.close()
    assert watched - calls(nullcontext()) < most


@pytest.mark.parametrize("every", [1, 5])
def test_laps_that_nobody_hears_of_are_counted_all_the_same(every):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    second = torch.nn.Linear(4, 1)
    seldom = torch.optim.SGD(second.parameters(), lr=0.01)
    x, all_told = torch.randn(2, 4), 0
    with zerograd.watch(policy="collect") as watching:
        for n in range(1, 700):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            all_told += 1
            if every > 1 and n % every == 0:
                seldom.zero_grad()
                second(x).sum().backward()
                seldom.step()
                all_told += 1
            metrics = watching.metrics()
            counts = {metrics[f"zerograd/{each}"] for each in ("steps", "backwards", "clears")}
            assert counts == {all_told}
            assert metrics["zerograd/iterations"] == n
    assert watching.findings == []
