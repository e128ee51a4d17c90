"""What a finding says of its cause where the usual words would lead astray."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from zerograd import watch  # noqa: E402


def loop(net, opt, *more, backward=True):
    with watch(policy="collect") as watching:
        for _ in range(4):
            for each in (opt, *more):
                each.zero_grad()
            loss = net(torch.ones(2, 3)).sum()
            if backward:
                loss.backward()
            opt.step()
    (finding,) = (each for each in watching.findings if each.rule.code == "ZG401")
    return finding


def parts():
    net = nn.Linear(3, 1)
    return net, torch.optim.SGD(net.parameters(), lr=0.1)


def test_of_a_step_with_no_backward_before_it():
    finding = loop(*parts(), backward=False)
    assert finding.message.endswith("nothing was filled since the last clear")
    assert finding.advice == "call backward() before opt.step()"


def test_of_an_optimizer_made_before_the_model_was_copied():
    net, opt = parts()
    finding = loop(copy.deepcopy(net), opt)
    assert finding.message == (
        "opt.step() finds no gradients: backward() left none in what opt holds, "
        "but in weight and 1 more"
    )
    assert finding.advice.endswith("copied, converted or replaced, make the optimizer after that")


def test_of_a_backward_that_fills_what_another_optimizer_holds():
    _, opt = parts()
    net, other = parts()
    finding = loop(net, opt, other)
    assert finding.message.endswith("backward() left none in what opt holds")
    assert (
        finding.advice
        == "call backward() on a loss that depends on what opt holds before opt.step()"
    )


def test_of_gradients_that_an_attack_has_left():
    net, opt = parts()
    shift = torch.zeros(2, 3, requires_grad=True)
    with watch(policy="collect") as watching:
        for _ in range(4):
            opt.zero_grad()
            for _ in range(2):
                net(torch.ones(2, 3) + shift).sum().backward()
                shift.data += 0.1 * shift.grad.sign()
                shift.grad = None
            net(torch.ones(2, 3) + shift.detach()).sum().backward()
            opt.step()
    (finding,) = watching.findings
    assert finding.rule.code == "ZG201"
    assert finding.message == "opt.step() also uses gradients that the loss for shift left behind"
    assert [step.text.removeprefix("next iteration: ") for step in finding.trail] == [
        "fills these gradients too, for shift",
        "uses the gradient of shift; what else was left is not cleared",
        "adds onto what was left",
        "steps on both",
    ]


@pytest.mark.parametrize(
    ("every", "at", "said"),
    [
        (1, 0, "opt is cleared at every micro-batch but stepped only at the end of a window"),
        (
            *(4, 3),
            "opt is cleared just before the last backward() of a window, so its step uses that one "
            "only",
        ),
    ],
)
def test_of_a_window_that_is_cleared_early(every, at, said):
    net, opt = parts()
    with watch(policy="collect") as watching:
        for batch in range(24):
            if batch % every == at:
                opt.zero_grad()
            (net(torch.randn(2, 3)).pow(2).mean() / 4).backward()
            if batch % 4 == 3:
                opt.step()
    (finding,) = watching.findings
    assert finding.rule.code == "ZG501"
    assert finding.message == said


def test_of_a_window_that_is_cleared_with_several_backwards_to_come():
    net, opt = parts()
    with watch(policy="collect") as watching:
        for _ in range(6):
            for _ in range(2):
                opt.zero_grad()
                for _ in range(2):
                    (net(torch.randn(2, 3)).pow(2).mean() / 4).backward()
            opt.step()
    (finding,) = watching.findings
    assert finding.rule.code == "ZG501"
    assert finding.message == (
        "opt is cleared in the midst of a window, so its step uses what the backward() calls "
        "after that fill only"
    )


def hand_on(*, clear_local: bool, clear_late: bool):
    """Run turns in which one network's gradients are given to the network that is stepped."""
    shared, local = nn.Linear(3, 1), nn.Linear(3, 1)
    opt = torch.optim.SGD(shared.parameters(), lr=0.1)
    with watch(policy="collect") as watching:
        for _ in range(4):
            local.load_state_dict(shared.state_dict())
            if clear_local:
                local.zero_grad()
            opt.zero_grad()
            local(torch.ones(2, 3)).sum().backward()
            for p, q in zip(shared.parameters(), local.parameters(), strict=True):
                p._grad = q.grad
            if clear_late:
                opt.zero_grad()
            opt.step()
    return watching.findings


def test_of_gradients_that_another_network_shares_and_nobody_clears():
    (finding,) = hand_on(clear_local=False, clear_late=False)
    assert finding.rule.code == "ZG101"
    assert finding.message == (
        "opt.step() uses gradients that it shares with weight and 1 more "
        "and that an earlier step already used"
    )
    assert finding.advice == (
        "clear the gradients of weight and 1 more between one opt.step() and the next backward()"
    )
    assert [step.code for step in finding.trail] == [
        "opt.step()",
        "local(torch.ones(2, 3)).sum().backward()",
        "opt.step()",
    ]
    assert not hand_on(clear_local=True, clear_late=False)


def test_of_gradients_that_are_given_and_then_cleared():
    (finding,) = hand_on(clear_local=True, clear_late=True)
    assert finding.rule.code == "ZG102"
    assert [step.code for step in finding.trail] == [
        "p._grad = q.grad",
        "opt.zero_grad()",
        "opt.step()",
    ]
