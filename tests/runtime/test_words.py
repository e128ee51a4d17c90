"""What a live finding says: at which line, in whose names, in which iteration, how much."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from zerograd import watch  # noqa: E402
from zerograd.lifecycle.findings import Live  # noqa: E402
from zerograd.runtime import leaves, names  # noqa: E402
from zerograd.runtime.call_site import receiver_of  # noqa: E402


def told(watching):
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return [(each.rule.code, lines[each.spot.line - 1].strip()) for each in watching.findings]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("self.opt.step()", "self.opt"),
        ("opts['g'].zero_grad()", "opts['g']"),
        ("schedule.step_and_update_lr()", "schedule"),
        ("agent.learn(300)", ""),  # a training of somebody else's
        ("accelerator.backward(loss)", ""),
    ],
)
def test_an_optimizer_is_not_called_by_the_name_of_what_trains(call, name):
    assert receiver_of(call) == name


def test_one_name_for_two_optimizers_is_no_name():
    one, other = nn.Linear(2, 1), nn.Linear(2, 1)
    opt_one, opt_other = (torch.optim.SGD(each.parameters(), 0.1) for each in (one, other))
    with watch(policy="collect") as watching:
        for _ in range(4):
            (one(torch.ones(1, 2)) + other(torch.ones(1, 2))).sum().backward()
            for opt in (opt_one, opt_other):
                opt.step()
    assert {each.message.partition(" ")[0] for each in watching.findings} == {"opt_one.step()"}


def test_a_clear_outside_of_a_closure_is_told_in_words_of_its_own_and_steps_are_the_users():
    model, inputs = nn.Linear(2, 1), torch.randn(8, 2)
    opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        return loss

    with watch(policy="collect") as watching:
        for _ in range(3):
            opt.zero_grad()
            opt.step(closure)
    (finding,) = watching.findings
    assert finding.rule.code == "ZG101" and "calls its closure several times" in finding.message
    assert finding.advice == "call opt.zero_grad() first thing in the closure"
    assert finding.trail[1].text == "next call of the closure: adds onto them"
    assert watching.steps == 3 and finding.live.count > 3


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells the line of a call only")
def test_of_several_statements_in_a_line_the_trail_shows_the_one_that_is_meant(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\n"
        "model = torch.nn.Linear(2, 1)\n"
        "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(3):\n"
        "    model(torch.ones(1, 2)).sum().backward(); opt.step()  # both at once\n"
    )
    with watch(policy="collect") as watching:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "program"})
    (finding,) = watching.findings
    assert [(each.code, each.text) for each in finding.trail] == [
        ("opt.step()", "steps; nothing clears the gradients it used"),
        ("model(torch.ones(1, 2)).sum().backward()", "next iteration: adds onto them"),
        ("opt.step()", "steps on both"),
    ]


def test_an_optimizer_is_called_as_the_step_that_is_told_of_calls_it():
    """Its name in a helper that clears is none where it steps."""

    def clear(each):
        each.zero_grad()

    model = nn.Linear(2, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(policy="collect") as watching:
        clear(opt)
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
            opt.step()
    (finding,) = watching.findings
    assert finding.message.startswith("opt.step() uses")
    assert finding.advice.startswith("call opt.zero_grad()")


def test_of_a_parameters_name_only_what_wrappers_add_is_left_out():
    inner = nn.Module()
    inner.submodule, inner.my_module = nn.Linear(2, 2), nn.Linear(2, 2)
    wrapped = nn.Module()
    wrapped.module = nn.Module()
    wrapped.module._orig_mod = nn.Module()
    wrapped.module._orig_mod._forward_module = inner
    assert names.parameter_names(list(inner.parameters()), [wrapped]) == [
        *("submodule.weight", "submodule.bias", "my_module.weight", "my_module.bias"),
    ]


def grows(make, *, after=0):
    """Train beside what `make` gives and no optimizer holds; it is gone when this returns."""
    net, target = nn.Linear(2, 1), make()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for turn in range(8):
        opt.zero_grad()
        x = torch.ones(1, 2)
        (net(x) - (target(x) if turn >= after else 0)).sum().backward()
        opt.step()


def without_names():
    held = [nn.Parameter(each.detach()) for each in nn.Linear(2, 1).parameters()]
    return lambda x: nn.functional.linear(x, *held)


def test_what_grows_and_is_gone_at_the_end_is_told_by_the_names_it_had():
    with watch(policy="collect", show_notes=True) as watching:
        grows(lambda: nn.Linear(2, 1))
    (finding,) = watching.findings
    assert finding.rule.code == "ZG105"
    assert finding.message.startswith("no optimizer holds weight and 1 more; every")
    assert finding.live.parameters == ("weight", "bias")


def test_what_grows_is_told_with_the_iteration_in_which_that_began():
    for after in (0, 3):
        with watch(policy="collect", show_notes=True) as watching:
            grows(lambda: nn.Linear(2, 1), after=after)
        (finding,) = watching.findings
        assert finding.live.step == after


def test_what_grows_and_never_had_a_name_is_told_by_how_many_they_are():
    with watch(policy="collect", show_notes=True) as watching:
        grows(without_names)
    (finding,) = watching.findings
    assert finding.message.startswith("no optimizer holds 2 parameters that are gone by now; every")
    assert finding.live.parameters == ()


def test_a_step_above_its_backward_is_told_to_go_below_it():
    model = nn.Linear(2, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(policy="collect") as watching:
        for _ in range(4):
            opt.zero_grad()
            loss = model(torch.ones(1, 2)).sum()
            opt.step()
            loss.backward()
    (finding,) = watching.findings
    assert finding.rule.code == "ZG102" and finding.advice == "call opt.step() after backward()"
    assert finding.message.startswith("opt.step() comes before the backward() it is meant for")


def test_an_unscale_after_the_clip_is_to_be_moved_as_a_second_one_raises():
    model = nn.Linear(2, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with watch(policy="collect") as watching:
        for _ in range(3):
            opt.zero_grad()
            scaler.scale(model(torch.ones(1, 2)).sum()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.unscale_(opt)
            scaler.step(opt)
            scaler.update()
    (finding,) = watching.findings
    assert finding.rule.code == "ZG301"
    assert finding.advice == "move scaler.unscale_(opt) before the clip"


# Weights that are updated by hand.


@pytest.fixture
def no_networks(monkeypatch):
    """Other tests' networks may still be alive in this process; a script has only its own."""
    monkeypatch.setattr(leaves, "has_networks", lambda: False)


@pytest.mark.usefixtures("no_networks")
@pytest.mark.parametrize("kind", [nn.Parameter, torch.Tensor.requires_grad_])
def test_each_update_by_hand_is_told_at_its_own_line(kind):
    w, b = kind(torch.ones(3, 1)), kind(torch.zeros(1))
    with watch(policy="collect") as watching:
        for _ in range(5):
            (torch.ones(4, 3) @ w + b).pow(2).mean().backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
                b.sub_(0.01 * b.grad)
    assert told(watching) == [
        ("ZG101", "w -= 0.01 * w.grad"),
        ("ZG101", "b.sub_(0.01 * b.grad)"),
    ]
    first, second = watching.findings
    assert first.message == "the update of w uses gradients that an earlier update already used"
    assert second.advice == "clear b.grad after each update"


@pytest.mark.usefixtures("no_networks")
def test_an_update_by_hand_is_told_though_its_gradient_is_gone():
    w = torch.ones(3, 1).requires_grad_()
    with watch(policy="collect") as watching:
        for i in range(8):
            if i % 2 == 0:
                w.grad = None
            (torch.ones(4, 3) @ w).pow(2).mean().backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
    assert told(watching) == [("ZG101", "w -= 0.01 * w.grad")]


def test_a_network_that_is_alive_is_noticed():
    network = nn.Linear(1, 1)
    assert names.has_networks() and network


def test_updates_by_hand_that_are_cleared_are_right():
    w, b = (torch.ones(3, 1).requires_grad_(), torch.zeros(1).requires_grad_())
    with watch(policy="collect") as watching:
        for _ in range(5):
            (torch.ones(4, 3) @ w + b).pow(2).mean().backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
                b -= 0.01 * b.grad
                w.grad = b.grad = None
    assert told(watching) == []


def test_an_input_of_a_frozen_network_is_no_weight():
    net = nn.Linear(3, 1).requires_grad_(False)
    delta = torch.zeros(4, 3, requires_grad=True)
    with watch(policy="collect") as watching:
        for _ in range(5):
            net(torch.ones(4, 3) + delta).sum().backward()
            delta.data += 0.01 * delta.grad.sign()
    assert told(watching) == [("ZG202", "delta.data += 0.01 * delta.grad.sign()")]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows no columns")
def test_columns_count_characters():
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with watch(policy="collect") as watching:
        for _ in range(3):
            net(torch.ones(2, 3)).sum().backward()
            words = "漢字é"; opt.step()  # fmt: skip # noqa: E702
    (finding,) = watching.findings
    line = linecache.getline(__file__, finding.spot.line)
    assert line[finding.spot.column - 1 : finding.spot.end_column - 1] == "opt.step()" and words


# Names.


class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optim = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def train(self):
        for _ in range(3):
            self.net.zero_grad()
            self.scaler.scale(self.net(torch.ones(2, 3)).sum()).backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.scaler.step(self.optim)
            self.scaler.update()


class Odd(nn.Module):
    """Has attributes that mean something else than torch's own of the same name."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.meta = 7

    def named_modules(self, *args, **more):
        raise RuntimeError("not now")


class Refuses(nn.Module):
    @property
    def meta(self):
        raise RuntimeError("not asked for")


class Anything:
    """Has every attribute that it is asked for, and can be called."""

    def __getattr__(self, name):
        return Anything()

    def __call__(self, *args):
        return self


class OptimizerOfOddParts(torch.optim.SGD):
    anything = Anything()


def test_modules_and_optimizers_of_odd_make_keep_nobody_from_being_told():
    half_made = nn.Module.__new__(nn.Linear)  # whose __init__ has not been called
    others = [Odd(), Refuses(), half_made]
    net = nn.Linear(3, 1)
    opt = OptimizerOfOddParts(net.parameters(), lr=0.1)
    with watch(policy="collect") as watching:
        for n in range(4):
            if n == 0:
                opt.zero_grad()
            net(torch.ones(2, 3)).sum().backward()
            opt.step()
    assert told(watching) == [("ZG101", "opt.step()")]
    assert watching.findings[0].live.parameters == ("weight", "bias")
    assert not watching.not_checked and len(others) == 3


def test_the_advice_names_an_optimizer_that_has_not_been_called_yet():
    with watch(policy="collect") as watching:
        Trainer().train()
    (finding,) = watching.findings
    assert finding.advice == "call self.scaler.unscale_(self.optim) before the clip"


def test_an_optimizer_in_a_dictionary_is_called_by_its_key():
    net = nn.Linear(3, 1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with watch(policy="collect") as watching:
        optimizers = {"net": torch.optim.SGD(net.parameters(), lr=0.1)}
        for _ in range(2):
            scaler.scale(net(torch.ones(2, 3)).sum()).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            net.zero_grad()
    (finding,) = watching.findings
    assert finding.advice == "call scaler.unscale_(optimizers['net']) before the clip"
    del optimizers


def test_what_an_object_does_when_it_is_asked_is_its_own_affair():
    class Touchy:
        def __getattribute__(self, name):
            raise RuntimeError(name)

    touchy, net = Touchy(), nn.Linear(3, 1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with watch(policy="collect") as watching:
        held = SimpleNamespace(opt=torch.optim.SGD(net.parameters(), lr=0.1))
        scaler.scale(net(torch.ones(2, 3)).sum()).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    assert watching.not_checked == []
    assert watching.findings[0].advice == "call scaler.unscale_(held.opt) before the clip"
    del touchy, held


# Iterations, counts and shares.


def test_a_leak_is_told_in_the_iteration_of_its_step():
    g, d = nn.Linear(3, 3), nn.Linear(3, 1)
    opt_g = torch.optim.SGD(g.parameters(), lr=0.01)
    opt_d = torch.optim.SGD(d.parameters(), lr=0.01)
    with watch(policy="collect") as watching:
        for _ in range(20):
            opt_g.zero_grad()
            opt_d.zero_grad()
            d(g(torch.ones(2, 3))).sum().backward()
            opt_g.step()
            d(torch.ones(2, 3)).sum().backward()
            opt_d.step()
    (finding,) = watching.findings
    assert (finding.rule.code, finding.live.step, finding.live.count) == ("ZG201", 0, 20)
    assert (finding.owner, finding.live.parameters) == ("opt_d", ("weight", "bias"))


def train_adversaries(*, clears_late):
    g, d = nn.Linear(3, 3), nn.Linear(3, 1)
    opt_g = torch.optim.SGD(g.parameters(), lr=0.01)
    opt_d = torch.optim.SGD(d.parameters(), lr=0.01)
    for _ in range(6):
        opt_g.zero_grad()
        d(g(torch.ones(2, 3))).sum().backward()
        opt_g.step()
        d(torch.ones(2, 3)).sum().backward()
        opt_d.step()
        if clears_late:
            opt_d.zero_grad()


def test_what_a_missing_clear_explains_is_told_once():
    with watch(policy="collect") as watching:
        train_adversaries(clears_late=False)
    assert [(each.rule.code, each.owner) for each in watching.findings] == [("ZG101", "opt_d")]


def test_the_fault_of_another_optimizer_of_that_name_explains_nothing():
    with watch(policy="collect") as watching:
        train_adversaries(clears_late=True)
        train_adversaries(clears_late=False)
    assert [each.rule.code for each in watching.findings] == ["ZG101", "ZG201"]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.5, "50% of the gradient is left over from earlier steps"),
        (0.996, "what is left over from earlier steps is 1.0 times as large as the whole gradient"),
        (3.2, "what is left over from earlier steps is 3.2 times as large as the whole gradient"),
        (None, ""),
    ],
)
def test_a_share_past_the_whole_is_told_as_a_multiple(share, words):
    assert Live(share=share).leftover == words


def test_losses_that_are_opposed_leave_more_behind_than_there_is():
    net = nn.Linear(3, 1, bias=False)
    opt = torch.optim.SGD(net.parameters(), lr=0.0)
    with watch(policy="collect") as watching:
        for sign in (1.0, -0.5):
            (sign * net(torch.ones(1, 3)).sum()).backward()
            opt.step()
    (finding,) = watching.findings
    assert finding.live.share == pytest.approx(2.0)


# What never comes.


def test_a_guard_that_is_never_true_is_told_at_the_end():
    net = nn.Linear(3, 1)
    with watch(policy="collect") as watching:
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(12):
            net(torch.ones(2, 3)).sum().backward()
            if i % 4 == 4:
                opt.step()
                opt.zero_grad()
    assert told(watching) == [("ZG203", "net(torch.ones(2, 3)).sum().backward()")]
    assert watching.findings[0].owner == "opt"


@pytest.mark.parametrize("rounds", [3, 7])
def test_a_run_too_short_for_its_window_is_no_fault(rounds):
    net = nn.Linear(3, 1)
    with watch(policy="collect") as watching:
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(rounds):
            net(torch.ones(2, 3)).sum().backward()
            if i == 8:
                opt.step()
    assert told(watching) == []


@pytest.mark.parametrize(("error", "codes"), [(ValueError, []), (KeyboardInterrupt, ["ZG203"])])
def test_a_run_that_an_exception_ends_might_have_stepped_yet(error, codes):
    net = nn.Linear(3, 1)
    with pytest.raises(error), watch(policy="collect") as watching:
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(12):
            net(torch.ones(2, 3)).sum().backward()
            if i == 10:
                raise error
    assert [code for code, _ in told(watching)] == codes
    del opt


def test_an_optimizer_that_waits_while_another_steps_may_have_its_turn_later():
    body, head = nn.Linear(3, 3), nn.Linear(3, 1)
    opt = torch.optim.SGD(head.parameters(), lr=0.1)
    with watch(policy="collect") as watching:
        later = torch.optim.SGD(body.parameters(), lr=0.1)
        for _ in range(12):
            opt.zero_grad()
            head(body(torch.ones(2, 3))).sum().backward()
            opt.step()
    assert told(watching) == []
    del later


def test_a_gradient_of_an_input_is_what_the_backward_was_for():
    net = nn.Linear(3, 1)
    x = torch.ones(2, 3, requires_grad=True)
    with watch(policy="collect") as watching:
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(12):
            net(x).sum().backward()
            x.grad = None
    assert told(watching) == []
    del opt


# Loss scalers.


@pytest.mark.parametrize("unscales", [False, True])
def test_an_update_that_torch_misses_is_told(unscales):
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with pytest.raises(RuntimeError), watch(policy="collect") as watching:
        for _ in range(3):
            opt.zero_grad()
            scaler.scale(net(torch.ones(2, 3)).sum()).backward()
            if unscales:
                scaler.unscale_(opt)
            scaler.step(opt)
    assert told(watching) == [("ZG302", "scaler.step(opt)")]


def test_zeros_that_a_clip_makes_are_no_clear():
    net = nn.Linear(4, 4)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    with watch(policy="collect") as watching:
        for _ in range(6):
            opt.zero_grad()
            scaler.scale(net(torch.ones(2, 4)).sum()).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
    assert [code for code, _ in told(watching)] == ["ZG301"]
