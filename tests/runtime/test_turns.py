"""Turns of the training loop are counted whatever they begin with."""

from __future__ import annotations

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
