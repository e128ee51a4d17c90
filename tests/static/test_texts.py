"""What a finding says: each word true, in the user's own names, and the right mend."""

from __future__ import annotations

from pathlib import Path

import pytest

import zerograd
from tests.static.notebooks import notebook
from zerograd.lifecycle.findings import Finding
from zerograd.static.check import Asked, Checker

SETTING = "import torch\nfrom torch import nn, optim\n"


def only(source: str) -> Finding:
    """Return the one finding of a program."""
    (finding,) = (
        each
        for each in zerograd.check_source(SETTING + source, "a.py")
        if each.certain and each.rule.severity != "note"
    )
    return finding


def how(finding: Finding) -> list[tuple[int, str]]:
    """Return the lines and words of its trail; lines are counted as `only` was given them."""
    return [(each.spot.line - SETTING.count("\n"), each.text) for each in finding.trail]


def test_an_unscale_in_each_round_of_a_window_is_to_be_moved_to_the_step() -> None:
    finding = only("""\
def train(net, opt, data, accum):
    scaler = torch.amp.GradScaler()
    for i, x in enumerate(data):
        scaler.scale(net(x).sum() / accum).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if (i + 1) % accum == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
""")
    assert finding.message == (
        "scaler.unscale_(opt) is called at every micro-batch, "
        "scaler.update() only at the end of a window"
    )
    assert finding.advice == (
        "move scaler.unscale_(opt) and the clip under the condition of scaler.step(opt)"
    )


@pytest.mark.parametrize(("before", "lines"), [("pass", [7]), ("scaler.update()", [])])
def test_a_round_left_between_its_unscale_and_its_update_is_told_within_another_question(
    before: str, lines: list[int]
) -> None:
    found = zerograd.check_source(
        f"""\
import torch
from settings import CHECKS
def train(net, opt, scaler, data):
    for x in data:
        loss = net(x).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        if CHECKS:
            if torch.isnan(loss):
                {before}
                opt.zero_grad()
                continue
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
""",
        "a.py",
    )
    assert [each.spot.line for each in found if each.certain] == lines
    assert all(each.rule.code == "ZG302" for each in found)


def test_an_update_that_a_bad_norm_skips_is_asked_for_there() -> None:
    finding = only("""\
def train(net, opt, data):
    scaler = torch.amp.GradScaler()
    for x in data:
        opt.zero_grad()
        scaler.scale(net(x).sum()).backward()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if not torch.isfinite(norm):
            continue
        scaler.step(opt)
        scaler.update()
""")
    assert finding.message == (
        "scaler.unscale_(opt) is not followed by scaler.update() where the step is skipped"
    )
    assert finding.advice == "call scaler.update() also where the step is skipped"


GAN = """\
class Trainer:
    def __init__(self, G, D):
        self.nets = {"G": G, "D": D}
        self.optims = {n: optim.Adam(net.parameters()) for n, net in self.nets.items()}
    def step(self, *names):
        for n in names:
            self.optims[n].step()
    def zero(self, *names):
        for n in names:
            self.optims[n].zero_grad()
    def fit(self, loader):
        for x in loader:
            self.nets["D"](self.nets["G"](x).detach()).mean().backward()
            self.step("D")
            self.zero("D", "G")
            self.nets["D"](self.nets["G"](x)).mean().neg().backward()
            self.step("G")
Trainer(nn.Linear(2, 2), nn.Linear(2, 2)).fit([])
"""


def test_one_of_several_optimizers_is_named_by_its_key() -> None:
    finding = only(GAN)
    assert finding.message.startswith("self.optims['D'].step() also uses")
    assert finding.advice.startswith("call self.optims['D'].zero_grad() before")


def test_a_line_that_two_calls_come_to_is_told_with_the_call() -> None:
    # What is called stands above its caller: going up the file is no next iteration.
    assert how(only(GAN)) == [
        (16, "fills these gradients too, for another optimizer"),
        (
            7,
            "(by the call in line 19) steps that optimizer; what it left here is not cleared",
        ),
        (13, "next iteration: adds onto what was left"),
        (7, "(by the call in line 16) steps on both"),
    ]


NOAM = """\
class Noam:
    def __init__(self, optimizer):
        self.optimizer = optimizer
    def step(self):
        for group in self.optimizer.param_groups:
            group["lr"] *= 0.9
        self.optimizer.step()
"""


def test_a_wrapper_that_cannot_clear_is_not_asked_to() -> None:
    source = f"""\
{NOAM}
def train(net, data):
    opt = Noam(optim.Adam(net.parameters()))
    for x in data:
        net(x).sum().backward()
        opt.step()
"""
    finding = only(source)
    assert finding.message == "opt.step() uses gradients that an earlier step already used"
    assert finding.advice.startswith("call opt.optimizer.zero_grad() between")
    assert "        opt.optimizer.zero_grad()\n" in fixed(source)


def test_a_backward_that_trains_too_is_not_to_be_left_out() -> None:
    finding = only(f"""\
{NOAM}
class Compute:
    def __init__(self, opt=None):
        self.opt = opt
    def __call__(self, loss):
        loss.backward()
        if self.opt is not None:
            self.opt.step()
            self.opt.optimizer.zero_grad()
def run_epoch(net, data, compute):
    for x in data:
        compute(net(x).sum())
def main(net, train, valid):
    opt = Noam(optim.Adam(net.parameters()))
    for epoch in range(10):
        run_epoch(net, train, Compute(opt))
        run_epoch(net, valid, Compute(None))
main(nn.Linear(2, 2), [], [])
""")
    assert finding.message == (
        "what the call in line 26 fills here is never cleared, and self.opt.step() uses it later"
    )
    assert finding.advice == (
        "call backward() only where self.opt.step() follows, or clear after line 26"
    )
    assert [words.split(")")[0] for _, words in how(finding)[:2]] == [
        "(by the call in line 26",
        "(by the call in line 25",
    ]


def test_a_clear_under_a_condition_is_told_with_it() -> None:
    source = """\
def train(net, opt, data, accum):
    for i, x in enumerate(data):
        net(x).sum().backward()
        opt.step()
        if (i + 1) % accum == 0:
            opt.zero_grad()
"""
    finding = only(source)
    assert how(finding)[0][1] == (
        "steps; line 8 clears the gradients it used only if `(i + 1) % accum == 0`"
    )
    assert finding.advice == (
        "put opt.step() under the condition of line 8, or call opt.zero_grad() after every step"
    )
    assert fixed(source) == source  # which of the two was meant, only its author knows


def test_a_clear_outside_the_loop_is_told() -> None:
    finding = only("""\
def train(net, opt, data):
    for epoch in range(3):
        opt.zero_grad()
        for x in data:
            net(x).sum().backward()
            opt.step()
""")
    assert how(finding)[0][1] == "steps; line 5 clears the gradients it used only outside this loop"


def test_the_clear_of_another_case_is_none_of_this_step() -> None:
    finding = only("""\
def train(net, opt, data, flag):
    for x in data:
        if flag:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
        else:
            net(x).mean().backward()
            opt.step()
""")
    assert how(finding)[0][1].startswith("steps; nothing clears the gradients it used")


def test_a_leak_into_a_window_is_not_to_be_cleared_away() -> None:
    finding = only("""\
def train(data):
    G, D = nn.Linear(2, 2), nn.Linear(2, 2)
    opt_G, opt_D = optim.Adam(G.parameters()), optim.Adam(D.parameters())
    for i, x in enumerate(data):
        if i % 2 == 0:
            opt_D.zero_grad()
        D(G(x).detach()).mean().backward()
        if (i + 1) % 2 == 0:
            opt_D.step()
        opt_G.zero_grad()
        D(G(x)).mean().neg().backward()
        opt_G.step()
""")
    assert finding.rule.code == "ZG201"
    assert finding.advice.startswith("keep `D(G(x)).mean().neg().backward()` out of opt_D's")
    assert "zero_grad" not in finding.advice


def test_what_an_attack_has_left_is_no_optimizers() -> None:
    finding = only("""\
def attack(net, x):
    x = x.clone().requires_grad_()
    net(x).mean().backward()
    return (x + 0.1 * x.grad.sign()).detach()
def train(net, data):
    opt = optim.Adam(net.parameters())
    for x in data:
        opt.zero_grad()
        net(attack(net, x)).mean().backward()
        opt.step()
""")
    assert finding.message == "opt.step() also uses gradients that the loss for x left behind"
    assert [text for _, text in how(finding)] == [
        "fills these gradients too, for x",
        "uses the gradient of x; what else was left is not cleared",
        "adds onto what was left",
        "steps on both",
    ]


def test_a_statement_is_quoted_whole() -> None:
    finding = only("""\
def train(net, data, merged):
    opt = optim.Adam(net.parameters())
    for x in data:
        for p in net.parameters():
            p.grad = merged(p, x)
        opt.zero_grad()
        opt.step()
""")
    assert finding.rule.code == "ZG102"
    assert finding.trail[0].code == "p.grad = merged(p, x)"


def test_the_spared_micro_batch_of_an_opposite_guard_is_the_right_one() -> None:
    said = [
        only(f"""\
def train(net, opt, data, accum):
    for i, x in enumerate(data):
        (net(x).sum() / accum).backward()
        if {guard}:
            opt.step()
            opt.zero_grad()
""").message
        for guard in ("(i + 1) % accum", "i % accum")
    ]
    assert [each.rpartition(" holds ")[2] for each in said] == [
        "at every micro-batch but the last of a window",
        "at every micro-batch but the first of a window",
    ]


def test_a_clear_that_its_caller_leaves_out_is_told_with_its_condition() -> None:
    finding = only("""\
class Trainer:
    def __init__(self, net):
        self.net, self.opt = net, optim.Adam(net.parameters())
    def update(self, clear=False):
        self.opt.step()
        if clear:
            self.opt.zero_grad()
    def fit(self, data):
        for x in data:
            self.net(x).sum().backward()
            self.update()
Trainer(nn.Linear(2, 2)).fit([])
""")
    assert how(finding)[0][1] == "steps; line 9 clears the gradients it used only if `clear`"


def test_an_update_by_hand_is_no_step_and_data_has_no_gradient() -> None:
    finding = only("""\
def train(net, data):
    for x in data:
        net(x).sum().backward()
        for p in net.parameters():
            p.data.add_(p.grad, alpha=-0.1)
""")
    assert finding.message.startswith("the update of p uses gradients")
    assert finding.advice == "clear p.grad after each update"
    assert [words for _, words in how(finding)] == [
        "updates; nothing clears the gradients it used",
        "next iteration: adds onto them",
        "updates with both",
    ]


def test_a_step_through_a_scaler_is_told_as_it_is_written() -> None:
    finding = only("""\
def train(net, opt, data):
    scaler = torch.amp.GradScaler()
    for x in data:
        scaler.scale(net(x).sum()).backward()
        scaler.step(opt)
        scaler.update()
""")
    assert finding.message == "scaler.step(opt) uses gradients that an earlier step already used"


def test_what_leaves_none_is_told_with_a_mend_that_fits() -> None:
    finding = only("""\
def train(net, data):
    opt = optim.Adam(net.parameters())
    for x in data:
        net(x).sum().backward()
        opt.step()
        opt.zero_grad()
        norms = [p.grad.norm() for p in net.parameters()]
""")
    assert how(finding) == [
        (6, "sets it to None"),
        (7, "uses it before another backward() fills it"),
    ]
    assert finding.advice.startswith("use it after the backward()")


def test_gradients_that_are_kept_while_they_grow_have_a_trail() -> None:
    finding = only("""\
def importances(net, data):
    fisher = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    for x in data:
        net(x).sum().backward()
        for name, p in net.named_parameters():
            fisher[name] += p.grad ** 2
""")
    assert [(each.code, each.text) for each in finding.trail] == [
        ("net(x).sum().backward()", "adds onto the gradients of the iterations before"),
        ("fisher[name] += p.grad ** 2", "keeps the sum"),
    ]


def test_what_throws_away_in_the_next_iteration_says_so() -> None:
    finding = only("""\
def train(a, b, data):
    opt_a, opt_b = optim.Adam(a.parameters()), optim.Adam(b.parameters())
    for x in data:
        opt_a.zero_grad()
        opt_b.zero_grad()
        b(a(x)).sum().backward()
        opt_b.step()
""")
    assert how(finding) == [
        (6, "fills its gradients"),
        (4, "next iteration: throws them away"),
    ]


def fixed(source: str) -> str:
    """Return the program as --fix leaves it."""
    text = SETTING + source
    result = Checker(Asked(fix=True)).check(text.encode(), "a.py")
    new = result.fixed["a.py"].data.decode() if result.fixed else text
    return new.removeprefix(SETTING)


def test_an_update_by_hand_that_sees_nothing_is_no_step_either() -> None:
    finding = only("""\
w = torch.zeros(3, requires_grad=True)
for x in data:
    (x @ w).sum().backward()
    w.grad.zero_()
    w.data -= 0.1 * w.grad
""")
    assert finding.advice == "clear after the update of w, or before backward()"


def test_weights_updated_by_hand_past_a_scaler_are_no_step() -> None:
    finding = only("""\
def train(net, data):
    scaler = torch.amp.GradScaler()
    for x in data:
        net.zero_grad()
        scaler.scale(net(x).sum()).backward()
        for p in net.parameters():
            p.data -= 0.1 * p.grad
""")
    assert finding.message == (
        "the update of p uses gradients of a scaled loss, with the scale in them"
    )
    assert finding.advice == (
        "divide p.grad by scaler.get_scale() first, "
        "and leave the update out where that is not finite"
    )
    assert how(finding) == [
        (5, "fills the gradients, multiplied by the scale"),
        (7, "updates with the scale still in them"),
    ]


def test_a_scaler_that_has_scaled_nothing_is_not_said_to_divide() -> None:
    finding = only("""\
def train(net, opt, data):
    scaler = torch.amp.GradScaler()
    for x in data:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), x)
        loss.backward()
        scaler.step(opt)
        scaler.update()
""")
    assert finding.message == (
        "the loss goes backward unscaled, and scaler has scaled none: scaler.step(opt) raises"
    )


def test_an_update_under_a_condition_is_named_with_it() -> None:
    finding = only("""\
def train(net, opt, data, last):
    scaler = torch.amp.GradScaler()
    for step, x in enumerate(data):
        opt.zero_grad()
        scaler.scale(net(x).sum()).backward()
        scaler.unscale_(opt)
        scaler.step(opt)
        if step < last:
            scaler.update()
""")
    assert (
        finding.message == "scaler.step(opt) is followed by scaler.update() only if `step < last`"
    )
    assert finding.advice == (
        "take line 11 out of that condition: "
        "scaler.update() comes once after the last scaler.step() of an iteration"
    )
    assert how(finding) == [
        (7, "steps; line 11 updates the scaler only if `step < last`"),
        (6, "next iteration: finds it stepped already, and raises"),
    ]


def test_of_two_steps_the_one_that_no_update_follows_is_told() -> None:
    finding = only("""\
def train(net, opt, data):
    scaler = torch.amp.GradScaler()
    for step, x in enumerate(data):
        opt.zero_grad()
        scaler.scale(net(x).sum()).backward()
        if step % 2 == 0:
            scaler.step(opt)
            scaler.update()
        else:
            scaler.step(opt)
""")
    assert finding.spot.line == 10 + SETTING.count("\n")
    assert how(finding) == [
        (10, "steps, and nothing updates the scaler"),
        (7, "next iteration: finds it stepped already, and raises"),
    ]


def test_an_update_after_the_loop_is_named() -> None:
    finding = only("""\
def train(net, opt, data):
    scaler = torch.amp.GradScaler()
    for epoch in range(9):
        for x in data:
            opt.zero_grad()
            scaler.scale(net(x).sum()).backward()
            scaler.step(opt)
        scaler.update()
""")
    assert finding.message == "scaler.step(opt) is followed by scaler.update() only after this loop"
    assert finding.advice.startswith("put line 10 into that loop: ")


def test_a_clear_where_an_exception_is_caught_is_told_as_that() -> None:
    finding = only("""\
def train(net, opt, data):
    for x in data:
        try:
            net(x).sum().backward()
            opt.step()
        except RuntimeError:
            opt.zero_grad()
""")
    assert how(finding)[0][1] == (
        "steps; line 9 clears the gradients it used only where an exception is caught"
    )


def test_a_clear_in_a_case_is_told_with_it() -> None:
    finding = only("""\
def train(net, opt, data, phase):
    for x in data:
        match phase:
            case "warmup":
                opt.zero_grad()
            case _:
                print(x)
        net(x).sum().backward()
        opt.step()
""")
    assert (
        how(finding)[0][1] == 'steps; line 7 clears the gradients it used only in `case "warmup"`'
    )


def test_a_clear_before_a_closure_is_in_the_loop_of_the_step() -> None:
    finding = only("""\
def train(net, data):
    opt = optim.LBFGS(net.parameters())
    def closure():
        loss = net(data).sum()
        loss.backward()
        return loss
    for _ in range(9):
        opt.zero_grad()
        opt.step(closure)
""")
    assert how(finding)[0][1] == (
        "steps; line 10 clears the gradients it used only before the first call of the closure"
    )


def test_a_clear_in_another_cell_is_told_with_its_cell() -> None:
    function = "def train(net, opt, data):\n    for x in data:\n        net(x).sum().backward()\n"
    loop = "for _ in range(9):\n    opt.zero_grad()\n    train(net, opt, data)"
    made = "import torch\nnet = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), 1)"
    data = notebook(function + "        opt.step()", made, loop)
    (finding,) = Checker(Asked()).check(data, "a.ipynb").findings
    assert finding.trail[0].text == (
        "steps; line 2 of cell 3 clears the gradients it used only outside this loop"
    )


def test_a_clear_in_the_callers_file_is_told_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("engine.py").write_text("""\
import torch
def train(net, opt, data):
    for x in data:
        net(x).sum().backward()
        opt.step()
""")
    Path("main.py").write_text("""\
import torch
from engine import train
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), 1)
for _ in range(9):
    opt.zero_grad()
    train(net, opt, [])
""")
    (finding,) = zerograd.check_paths(["."])
    assert finding.trail[0].text == (
        "steps; main.py:6 clears the gradients it used only outside this loop"
    )


def test_a_clear_among_what_is_written_down_is_no_window() -> None:
    finding = only("""\
def train(net, opt, data, writer):
    for i, x in enumerate(data):
        loss = net(x).sum()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            print(loss)
            writer.add_scalar("loss", loss.item(), i)
            opt.zero_grad()
""")
    assert finding.advice == "call opt.zero_grad() after every step"


TWO = """\
def train(data):
    actor, critic = nn.Linear(2, 2), nn.Linear(2, 2)
    actor_opt, critic_opt = optim.SGD(actor.parameters(), 1), optim.SGD(critic.parameters(), 1)
    for x in data:
"""


def test_a_step_of_the_wrong_one_of_two_optimizers_is_one_fault() -> None:
    source = f"""{TWO}\
        critic_opt.zero_grad()
        critic(x).square().mean().backward()
        critic_opt.step()
        actor_opt.zero_grad()
        critic(actor(x)).mean().neg().backward()
        critic_opt.step()
"""
    finding = only(source)
    assert (finding.rule.code, finding.spot.line) == ("ZG101", 12)
    assert finding.advice == "call actor_opt.step() here: nothing steps actor_opt"
    assert fixed(source) == source  # a clear in between would hide it


def test_one_optimizer_stepped_twice_and_the_other_never_is_one_fault() -> None:
    finding = only(f"""{TWO}\
        loss = actor(x).mean() + critic(x).mean()
        actor_opt.zero_grad()
        critic_opt.zero_grad()
        loss.backward()
        actor_opt.step()
        actor_opt.step()
""")
    assert finding.rule.code == "ZG402"
    assert finding.advice == "call critic_opt.step() here: nothing steps critic_opt"


def test_an_unused_optimizer_beside_a_loop_that_never_clears_is_a_fault_of_its_own() -> None:
    found = zerograd.check_source(f"""{SETTING}{TWO}\
        critic_opt.zero_grad()
        (actor(x).mean() + critic(x).mean()).backward()
        actor_opt.step()
""")
    assert sorted(each.rule.code for each in found) == ["ZG101", "ZG203"]


def test_apex_has_no_context_to_keep_a_micro_batch_from_the_other_ranks() -> None:
    source = """\
import torch
{}
def train(net, opt, data, accum):
    net = DDP(net)
    for i, x in enumerate(data):
        {}
        (net(x).sum() / accum).backward()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
"""

    def advice(imported: str, switch: str = "pass") -> list[str]:
        text = source.format(imported, switch)
        return [each.advice for each in zerograd.check_source(text, "a.py", select=["ZG505"])]

    of_apex = "from apex.parallel import DistributedDataParallel as DDP"
    assert advice("from torch.nn.parallel import DistributedDataParallel as DDP") == [
        "run all but the last micro-batch, forward and backward, inside model.no_sync()"
    ]
    assert advice(of_apex) == [
        "call disable_allreduce() of the wrapped model for all but the last micro-batch, "
        "and enable_allreduce() before that one"
    ]
    assert not advice(of_apex, "net.disable_allreduce()")


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("loss.backward()", True),
        ("scaler.scale(loss / 4).backward()", True),
        ("if scaler:\n                    loss.backward()", True),
        ("net(x).sum().backward()", False),
        ("loss = net(x).sum()\n                loss.backward()", False),
    ],
)
def test_a_no_sync_around_a_backward_alone_keeps_nothing_back(inside: str, told: bool) -> None:
    source = f"""\
from torch.nn.parallel import DistributedDataParallel as DDP
def train(net, opt, data, scaler):
    net = DDP(net)  # without no_sync() every backward is exchanged
    for i, x in enumerate(data):
        loss = net(x).sum() / 4
        if (i + 1) % 4 == 0:
            loss.backward()
            opt.step()
            opt.zero_grad()
        else:
            with net.no_sync():
                {inside}
"""
    found = zerograd.check_source(source, "a.py", select=["ZG505"])
    assert [(each.spot.line, each.advice) for each in found] == (
        [(11, "run the forward inside net.no_sync() as well")] if told else []
    )


@pytest.mark.parametrize(
    ("condition", "loss", "scaling", "told"),
    [
        ("i % 4 == 0 or i == len(data)", "loss", "pass", ["ZG503", "ZG505"]),
        ("i % 4 == 0 or i == len(data)", "loss", "p.grad.mul_(scale)", ["ZG505"]),
        ("i % 4 == 0 or i == len(data)", "loss / 4", "pass", ["ZG505"]),
        ("i % 4 == 0", "loss", "p.grad *= scale", ["ZG502", "ZG505"]),
        ("i % 4 == 0 or i == len(data)", "net(x).sum()", "p.grad *= scale", []),
    ],
)
def test_a_window_whose_two_backwards_are_written_out_is_seen_by_its_no_sync(
    condition: str, loss: str, scaling: str, told: list[str]
) -> None:
    source = f"""\
from torch.nn.parallel import DistributedDataParallel as DDP
def train(net, opt, data, scale):
    net = DDP(net)
    for i, x in enumerate(data, start=1):
        loss = net(x).sum()
        last = {condition}
        if last:
            ({loss}).backward()
        else:
            with net.no_sync():
                ({loss}).backward()
        if last:
            for p in net.parameters():
                {scaling}
            opt.step()
            opt.zero_grad()
"""
    found = zerograd.check_source(source, "a.py", notes=True)
    assert sorted({each.rule.code for each in found}) == told


@pytest.mark.parametrize(("asked", "told"), [("forward_train", [11]), ("train_on", [])])
def test_the_forward_of_a_training_round_goes_back_no_step(asked: str, told: list[int]) -> None:
    source = f"""\
{SETTING}from detectors import Detector, get_data
def train(cfg):
    net = Detector(4)
    opt = optim.Adam(net.parameters())
    for x in get_data(cfg):
        opt.zero_grad()
        losses = net.{asked}(x)
        loss = losses.a + losses.b
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        loss.backward()
        opt.step()
"""
    found = zerograd.check_source(source, "a.py")
    assert [each.spot.line for each in found if each.certain] == told


def test_an_update_between_an_unscale_and_its_step_has_it_unscale_twice() -> None:
    loop = """\
class Trainer:
    def __init__(self, net):
        self.net = net
        self.scaler = torch.amp.GradScaler()
        self.one, self.other = optim.SGD(net[0].parameters(), 1), optim.SGD(net[1].parameters(), 1)
    def finish(self, opt):
        self.scaler.step(opt)
        self.scaler.update()
    def fit(self, data):
        for x in data:
            self.one.zero_grad()
            self.other.zero_grad()
            self.scaler.scale(self.net(x).sum()).backward()
            {}
            self.finish(self.one)
            self.finish(self.other)
Trainer(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))).fit([])
"""
    twice = only(loop.format("self.scaler.unscale_(self.other)"))
    assert twice.message.endswith("self.scaler.step(opt), which then unscales a second time")
    assert how(twice)[1:] == [
        (14, "takes the scale out"),
        (8, "(by the call in line 17) updates the scaler, which forgets that optimizer"),
        (7, "(by the call in line 18) divides them by the scale a second time"),
    ]
    once = only(loop.format("pass"))
    assert once.message.endswith("self.scaler.step(opt), which then takes another scale")
    assert len(once.trail) == 3


def test_a_clear_that_does_not_reach_what_is_stepped_is_not_to_be_called_again() -> None:
    finding = only("""\
class Wrapper:
    def __init__(self, optimizer):
        self.optimizer = optimizer
    def zero_grad(self):
        pass
    def step(self):
        self.optimizer.step()
def train(data):
    net = nn.Linear(2, 2)
    opt = Wrapper(optim.SGD(net.parameters(), lr=0.1))
    for x in data:
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()
""")
    assert how(finding)[0][1] == (
        "steps; nothing clears the gradients it used "
        "(opt.zero_grad() in line 14 does not reach them)"
    )
    assert finding.advice == "let opt.zero_grad() clear what opt.step() uses"
