"""Findings to report about, made by the machine and not by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Edit, Finding, Fix, Live
from zerograd.lifecycle.judge import judge
from zerograd.report.excerpt import Source
from zerograd.rules import ALL_RULES

SCRIPT = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def source() -> Source:
    def lines(path: str, cell: int | None) -> list[str]:
        if path.startswith("train"):
            return SCRIPT.splitlines()
        return SCRIPT.splitlines()[5:] if cell == 3 else []

    return lines


@pytest.fixture
def stale() -> Finding:
    """A loop that never clears, as the static checker tells it."""
    return _stale("train.py", 8, None)


@pytest.fixture
def in_a_notebook() -> Finding:
    return _stale("loop.ipynb", 3, 3)


@pytest.fixture
def live(stale: Finding) -> Finding:
    """The same fault, seen in a run of two ranks."""
    parameters = ("0.weight", "0.bias", "2.weight", "2.bias")
    return replace(stale, live=Live(1, (0, 1), parameters, count=312, share=0.613))


@pytest.fixture
def fixable(stale: Finding) -> Finding:
    edit = Edit(10, 1, 10, 1, "    optimizer.zero_grad()\n")
    return replace(stale, fix=Fix("add optimizer.zero_grad() after the step", (edit,)))


def _stale(path: str, line: int, cell: int | None) -> Finding:
    filled = Spot(path, line, 5, line, 20, cell)
    stepped = Spot(path, line + 1, 5, line + 1, 21, cell)
    backward = Event(EventKind.BACKWARD, "optimizer", filled)
    step = Event(EventKind.STEP, "optimizer", stepped, text="optimizer.step()")
    (finding,) = judge([backward, step, backward, step], ALL_RULES)
    return finding
