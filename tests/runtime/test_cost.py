"""What watching costs, in Python calls a step: seconds belong into the benchmarks."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")

import zerograd  # noqa: E402
from zerograd.trace.format import Header  # noqa: E402
from zerograd.trace.writer import TraceWriter  # noqa: E402

STEPS = 256


def calls(context, before=400):
    """Return how many Python functions one step calls, after so many steps."""
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, count = torch.randn(2, 4), 0

    def counting(frame, event, arg):
        nonlocal count
        count += event == "call"

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

    with context:
        train(before)
        sys.setprofile(counting)
        try:
            train(STEPS)
        finally:
            sys.setprofile(None)
    return count / STEPS


def test_a_loop_that_is_a_habit_costs_ten_calls_a_step():
    assert calls(zerograd.watch(policy="collect")) - calls(nullcontext()) < 10.5


@pytest.mark.parametrize(("kept", "most"), [(10_000, 38), (100, 26)])
def test_a_trace_costs_few_calls_more(kept, most, tmp_path):
    header = Header("0", time.time())
    writer = TraceWriter(tmp_path / "t.jsonl", header, kept_at_first=kept)
    watched = calls(zerograd.watch(policy="collect", trace=writer))
    writer.close()
    assert watched - calls(nullcontext()) < most
