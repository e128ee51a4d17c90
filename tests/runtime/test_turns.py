"""Turns of the training loop are counted whatever they begin with, and told by what is run."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from zerograd import watch  # noqa: E402


def pairs(count=1):
    torch.manual_seed(0)
    nets = [nn.Linear(3, 1) for _ in range(count)]
    return [(net, torch.optim.SGD(net.parameters(), lr=0.01)) for net in nets]


def assign(net):
    """What `torch.func` and `autograd.grad` leave to their users."""
    params = list(net.parameters())
    for p, g in zip(params, torch.autograd.grad(net(torch.randn(4, 3)).sum(), params), strict=True):
        p.grad = g


def test_where_gradients_are_assigned_and_nothing_is_cleared():
    ((net, opt),) = pairs()
    with watch(policy="collect") as watching:
        for n in range(9):
            assign(net)
            opt.step()
            if n >= 5:
                nn.utils.clip_grad_norm_(net.parameters(), 0.1)  # for nobody
    assert watching.metrics()["zerograd/iterations"] == 9
    (finding,) = watching.findings
    assert (finding.rule.code, finding.live.step) == ("ZG304", 6)  # told the second time


def test_where_several_optimizers_step_at_one_line():
    both = pairs(2)
    with watch(policy="collect") as watching:
        for _ in range(7):
            for net, opt in both:
                assign(net)
                opt.step()
    assert watching.metrics()["zerograd/iterations"] == 7
    assert watching.findings == []


def test_steps_on_one_backward_are_one_turn():
    ((net, opt),) = pairs()
    with watch(policy="collect") as watching:
        for _ in range(5):
            opt.zero_grad()
            net(torch.randn(4, 3)).sum().backward()
            for _ in range(2):
                opt.step()
    assert watching.metrics()["zerograd/iterations"] == 5


def test_a_clip_after_two_steps_is_in_time_for_neither():
    ((net, opt),) = pairs()
    with watch(policy="collect") as watching:
        for _ in range(5):
            net(torch.randn(4, 3)).sum().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.step()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # for nobody
            opt.zero_grad()
    told = {each.rule.code: each.spot.line for each in watching.findings}
    assert told.keys() == {"ZG304", "ZG402"}
    assert told["ZG304"] == told["ZG402"] + 1


def test_a_clip_between_two_steps_is_in_time_for_the_second():
    ((net, opt),) = pairs()
    with watch(policy="collect") as watching:
        for _ in range(5):
            net(torch.randn(4, 3)).sum().backward()
            opt.step()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
    assert {each.rule.code for each in watching.findings} == {"ZG402"}


PARTS = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def loss(): return net(torch.randn(4, 3)).pow(2).mean()
"""
LINES_ABOVE = """
def step(): opt.step()
def clear(): opt.zero_grad()
for _ in range(6):
    loss().backward()
    {}
"""
TRAINER = """
class Trainer:
    def update(self):
        opt.step()
    def clear(self):
        opt.zero_grad()
    def fit(self, what):
        for _ in range(6):
            what(self)
"""
TWO = """
maker, judge = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
opt_m, opt_j = (torch.optim.SGD(each.parameters(), lr=0.01) for each in (maker, judge))
def step_j(): opt_j.step()
def back_j(): judge(torch.randn(4, 3)).mean().backward()
def step_m(): opt_m.step()
def back_m(): (-judge(maker(torch.randn(4, 3))).mean()).backward()
for _ in range(6):
    opt_m.zero_grad(); back_m(); step_m()
    back_j(); step_j(); opt_j.zero_grad()
"""
BOTH_BY_ONE = """
def train(net, opt):
    net(torch.randn(4, 3)).mean().backward()
    opt.step()
other = torch.nn.Linear(3, 1)
opt_other = torch.optim.SGD(other.parameters(), lr=0.01)
for _ in range(6):
    opt.zero_grad()
    train(net, opt)
    train(other, opt_other)
"""
CALLED_TWICE = """
def step(): opt.step()
def train(rounds):
    for _ in range(rounds):
        loss().backward()
        step()
        if rounds == 2:
            opt.zero_grad()
train(2)
train(6)
"""
CLOSURE = """
search = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
def step(closure): search.step(closure)
def closure():
    found = loss()
    found.backward()
    return found
for _ in range(3):
    search.zero_grad()
    step(closure)
"""
BY_HAND = """
def wipe():
    for p in net.parameters():
        p.grad.zero_()
for _ in range(6):
    loss().backward()
    wipe()
    opt.step()
"""
WITH_A_BLOCK = """
import contextlib
@contextlib.contextmanager
def updating():
    yield
    opt.step()
for _ in range(6):
    with updating():
        loss().backward()
        opt.zero_grad()
"""
UPDATED_BY_HAND = """
net = torch.nn.Linear(3, 1)  # of no optimizer
def update():
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.01 * p.grad
for _ in range(6):
    loss().backward()
    update()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells the line of a call only")
@pytest.mark.parametrize(
    ("program", "code", "again"),
    [
        (LINES_ABOVE.format("step()"), "ZG101", [0, 1, 0]),
        (LINES_ABOVE.format("clear(); opt.step()"), "ZG102", [0, 0, 0]),
        (LINES_ABOVE.format("opt.step()\n    clear(); loss().backward()"), "", []),
        (
            TRAINER + "def each(self):\n    loss().backward()\n    self.update()\n"
            "Trainer().fit(each)",
            "ZG101",
            [0, 1, 0],
        ),
        (
            TRAINER + "def each(self):\n    loss().backward()\n    self.clear(); self.update()\n"
            "Trainer().fit(each)",
            "ZG102",
            [0, 0, 0],
        ),
        (TWO, "ZG201", [0, 0, 0, 0]),
        (BOTH_BY_ONE, "ZG101", [0, 1, 0]),
        (CALLED_TWICE, "ZG101", [0, 1, 0]),
        (CLOSURE, "ZG101", [0, 1, 0]),
        (BY_HAND, "ZG102", [0, 0, 0]),
        (WITH_A_BLOCK, "ZG102", [0, 0, 0]),
        (UPDATED_BY_HAND, "ZG101", [0, 1, 0]),
    ],
)
def test_a_trail_says_next_iteration_where_the_program_has_come_round(
    tmp_path, program, code, again
):
    path = tmp_path / "program.py"
    path.write_text(PARTS + program)
    with watch(policy="collect") as watching:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "program"})
    found = [each for each in watching.findings if each.rule.code == code]
    assert [[each.text.startswith("next ") for each in one.trail] for one in found] == (
        [list(map(bool, again))] if code else []
    )


def test_a_trail_over_two_files_says_it_too(tmp_path, monkeypatch):
    (tmp_path / "turned.py").write_text("#\n" * 20 + "def step(opt):\n    opt.step()\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(
        dedent(
            """
            from turned import step
            for _ in range(6):
                loss().backward()
                step(opt)
            """
        )
    )
    names = {"__name__": "program"}
    exec(PARTS, names)
    with watch(policy="collect") as watching:
        exec(compile(path.read_text(), str(path), "exec"), names)
    sys.modules.pop("turned")
    (finding,) = watching.findings
    assert [each.text.startswith("next ") for each in finding.trail] == [False, True, False]
