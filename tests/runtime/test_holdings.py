"""What optimizers hold: exchanged without a call, and many of them at once."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from zerograd import watch  # noqa: E402
from zerograd.runtime.buckets import MOST_BUCKETS  # noqa: E402


def test_a_parameter_exchanged_in_the_midst_of_a_group_is_held_from_its_next_step_on():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    with watch(policy="collect") as watching:
        for n in range(8):
            if n == 3:
                net[1].weight = nn.Parameter(net[1].weight.detach() / 2)
                opt.param_groups[0]["params"][2] = net[1].weight
            net(torch.randn(4, 3)).pow(2).mean().backward()
            opt.step()
            if n > 4:
                continue
            opt.zero_grad()
    (finding,) = watching.findings
    assert (finding.rule.code, finding.owner, finding.live.count) == ("ZG101", "opt", 2)
    assert "1.weight" in finding.live.parameters
    assert watching.state_of(net[1].weight)[0] == "opt"


def agents(count):
    torch.manual_seed(0)
    nets = [nn.Linear(3, 1) for _ in range(count)]
    return [(net, torch.optim.SGD(net.parameters(), lr=0.01)) for net in nets]


def learn(team, turns, forgotten=None):
    for _ in range(turns):
        for n, (net, opt) in enumerate(team):
            if n != forgotten:
                opt.zero_grad()
            net(torch.ones(2, 3)).pow(2).mean().backward()
            opt.step()


def test_the_fortieth_optimizer_is_watched_too():
    with watch(policy="collect") as watching:
        learn(agents(40), 4, forgotten=39)  # met no sooner than at its first step
    assert [(each.rule.code, each.live.count) for each in watching.findings] == [("ZG101", 2)]
    assert watching.not_checked == []


def test_that_there_are_too_many_is_said():
    with watch(policy="collect") as watching:
        learn(agents(MOST_BUCKETS + 1), 2)
    (note,) = watching.not_checked
    assert note == f"parameters whose histories differ in more than {MOST_BUCKETS} ways"


def test_agents_that_share_what_nobody_clears_are_told_of_once():
    shared, heads = nn.Linear(3, 3), [nn.Linear(3, 1) for _ in range(3)]
    opts = [torch.optim.SGD([*shared.parameters(), *h.parameters()], lr=0.01) for h in heads]
    with watch(policy="collect") as watching:
        for _ in range(4):
            for head, opt in zip(heads, opts, strict=True):
                head.zero_grad()
                head(shared(torch.ones(2, 3))).sum().backward()
                opt.step()
    assert [finding.rule.code for finding in watching.findings] == ["ZG101"]


def test_forty_experts_are_told_apart():
    experts = nn.ModuleList(nn.Linear(3, 1) for _ in range(40))
    opt = torch.optim.SGD(experts.parameters(), lr=0.01)
    with watch(policy="collect") as watching:
        for n in range(80):
            opt.zero_grad()
            experts[n * 7 % 40](torch.ones(2, 3)).sum().backward()
            opt.step()
    assert watching.findings == [] and watching.not_checked == []


def test_agents_that_learn_in_turn_at_one_line_take_one_turn_of_the_loop_and_are_ridden(
    monkeypatch,
):
    from zerograd.runtime import hooks

    rides = []
    real = hooks.set_ride
    monkeypatch.setattr(hooks, "set_ride", lambda ride: rides.append(ride) or real(ride))
    with watch(policy="collect") as watching:
        learn(agents(5), 40)
    assert watching.metrics()["zerograd/iterations"] == 40
    assert any(ride is not None for ride in rides)
    assert watching.findings == []
