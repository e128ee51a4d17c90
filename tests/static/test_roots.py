"""Where reading begins, and where it does not."""

from __future__ import annotations

import pytest

from zerograd.static.engine.reading.program import Program
from zerograd.static.engine.reading.roots import roots
from zerograd.static.settings import NO_WRAPPERS
from zerograd.static.source import Source

FREEZES = """
def freeze(net):
    for weight in net.parameters():
        weight.requires_grad = False

class Tests:
    def test_frozen(self):
        net = make()
        freeze(net)
        assert not net.head.weight.requires_grad
"""
TRAINS = """
def train(net, opt, data):
    freeze(net.head)
    for x in data:
        net(x).sum().backward()
        opt.step()
"""


@pytest.mark.parametrize(("text", "begins"), [(FREEZES, 0), (FREEZES + TRAINS, 1)])
def test_what_only_freezes_is_read_where_one_that_trains_calls_it(text: str, begins: int) -> None:
    program = Program(Source.parse(text), None, NO_WRAPPERS)
    fuel = program.fuel
    assert len(list(roots(program))) == begins
    assert (program.fuel < fuel) is bool(begins)  # else not an expression was read
