"""What the engine understands, one loop a shape: each line that breaks a rule says so itself.

`# expect: ZG101` stands on the line the finding must point at; a loop without
it is right, and nothing may be said of it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import zerograd
from zerograd.static.engine.flow import buckets, flow
from zerograd.static.engine.text.words import fills_by_name

LOOPS = Path(__file__).parent / "loops"
EXPECTED = re.compile(r"# expect: (ZG\d{3})")
CASES = {
    f"{file.stem}-{title}": text
    for file in sorted(LOOPS.glob("*.txt"))
    for title, text in re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)", file.read_text("utf-8"), re.M | re.S
    )
}
SETTING = "import torch\nfrom torch import nn, optim\nimport torch.nn.functional as F\n"


@pytest.mark.parametrize("name", CASES)
def test_the_engine_says_what_the_loop_says(name: str) -> None:
    source = SETTING + CASES[name]
    expected = {
        (code, number)
        for number, line in enumerate(source.splitlines(), 1)
        for code in EXPECTED.findall(line)
    }
    found = {
        (each.rule.code, each.spot.line) for each in zerograd.check_source(source, f"{name}.py")
    }
    assert found == expected


def test_every_file_of_loops_holds_some() -> None:
    assert len(CASES) > 60


@pytest.mark.parametrize(
    ("loss", "noted"),
    [
        ('out["loss"] / float(every)', False),
        ('out["loss"] / every', False),
        ('out["loss"] / 2', False),
        ('out["loss"]', True),
    ],
)
def test_a_loss_that_the_window_divides_is_averaged_whatever_it_is_taken_from(
    loss: str, noted: bool
) -> None:
    source = f"""{SETTING}
def train(algorithm, opt, data, every):
    for i, x in enumerate(data):
        out = algorithm.update(x)
        loss = {loss}
        loss.backward()
        if (i + 1) % every == 0:
            opt.step()
            opt.zero_grad()
"""
    found = {each.rule.code for each in zerograd.check_source(source, "a.py", notes=True)}
    assert ("ZG503" in found) is noted


@pytest.mark.parametrize(("loss", "noted"), [('out["loss"] / self.every', False), ("out", True)])
def test_a_loss_is_averaged_where_the_loop_calls_the_function_that_divides_it(
    loss: str, noted: bool
) -> None:
    source = f"""{SETTING}
class Engine:
    def micro_batch(self, i, x):
        out = self.algorithm.update(x)
        go_back({loss})
        if (i + 1) % self.every == 0:
            self.opt.step()
            self.opt.zero_grad()

    def fit(self, data):
        for i, x in enumerate(data):
            self.micro_batch(i, x)

def go_back(loss):
    loss.backward()
"""
    found = {each.rule.code for each in zerograd.check_source(source, "a.py", notes=True)}
    assert ("ZG503" in found) is noted


@pytest.mark.parametrize(("first", "noted"), [("critic.zero_grad()", False), ("pass", True)])
def test_rounds_after_a_step_are_no_window_of_the_next_one_if_it_clears_first(
    first: str, noted: bool
) -> None:
    source = f"""{SETTING}
critic, actor = nn.Linear(2, 1), nn.Linear(2, 2)
critic_opt = optim.SGD(critic.parameters(), lr=0.1)
actor_opt = optim.SGD(actor.parameters(), lr=0.1)
for x in data:
    {first}
    critic(x).sum().backward()
    critic_opt.step()
    critic.zero_grad(set_to_none={noted})
    for part in x.chunk(4):
        actor.zero_grad()
        critic(part).sum().backward()
        actor_opt.step()
"""
    found = {each.rule.code for each in zerograd.check_source(source, "a.py", notes=True)}
    assert ("ZG503" in found) is noted


def test_an_optimizer_without_a_name_is_told_as_it_is_written() -> None:
    source = f"""{SETTING}
import pytorch_lightning as pl
class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Linear(2, 1)

    def configure_optimizers(self):
        return [optim.Adam(self.net.parameters())], []

    def run(self, batch):
        for x in batch:
            self.optimizers().zero_grad()
            self.manual_backward(self.net(x).sum())

    def training_step(self, batch, i):
        self.run(batch)
"""
    found = zerograd.check_source(source, "a.py", may=True)
    assert found and all(each.message.startswith("self.optimizers() ") for each in found)


@pytest.mark.parametrize(("filled", "noted"), [("(i + 1) % 2 == 0", False), ("i > 0", True)])
def test_a_loss_in_the_rounds_of_the_step_alone_is_no_window(filled: str, noted: bool) -> None:
    source = f"""{SETTING}
net = nn.Linear(2, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
for i, x in enumerate(data):
    if {filled}:
        net(x).sum().backward()
    if i % 2 == 0:
        continue
    opt.step()
    opt.zero_grad()
"""
    found = {each.rule.code for each in zerograd.check_source(source, "a.py", notes=True)}
    assert ("ZG503" in found) is noted


@pytest.mark.parametrize(
    ("filled", "size", "noted"),
    [
        ("i % 2 == 0", 2, False),
        ("i % 2 != 1", 2, False),
        ("i >= 0", 2, True),
        ("i % 3 == 0", 2, True),
        ("i % 3 != 0", 3, True),
    ],
)
def test_a_window_of_two_with_one_loss_in_it_is_no_sum(filled: str, size: int, noted: bool) -> None:
    source = f"""{SETTING}
net = nn.Linear(2, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
for i, x in enumerate(data):
    if {filled}:
        net(x).sum().backward()
    if (i + 1) % {size} == 0:
        opt.step()
        opt.zero_grad()
"""
    found = {each.rule.code for each in zerograd.check_source(source, "a.py", notes=True)}
    assert ("ZG503" in found) is noted
    assert "ZG502" in found  # the loss of an odd batch at the end is lost all the same


@pytest.mark.parametrize(
    ("after", "advice"),
    [
        ("scaler.unscale_(opt)", "move scaler.unscale_(opt) before the clip"),
        ("scaler.unscale_(other)", "call scaler.unscale_(opt) before the clip"),
        ("print(x)", "call scaler.unscale_(opt) before the clip"),
    ],
)
def test_an_unscale_after_the_clip_is_to_be_moved_as_a_second_one_raises(
    after: str, advice: str
) -> None:
    source = f"""{SETTING}
net, head = nn.Linear(2, 2), nn.Linear(2, 2)
opt = optim.SGD(net.parameters(), lr=0.1)
other = optim.SGD(head.parameters(), lr=0.1)
scaler = torch.amp.GradScaler()
for x in data:
    opt.zero_grad()
    scaler.scale(net(x).sum()).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    {after}
    scaler.step(opt)
    scaler.update()
"""
    (finding,) = (each for each in zerograd.check_source(source, "a.py") if each.certain)
    assert finding.rule.code == "ZG301" and finding.advice == advice


def test_a_scaler_that_a_class_makes_is_told_as_it_is_written() -> None:
    source = f"""{SETTING}
class Trainer:
    def __init__(self, net):
        self.net, self.scaler = net, torch.amp.GradScaler()
        self.opt = optim.SGD(net.parameters(), lr=0.1)
    def fit(self, data):
        for x in data:
            self.opt.zero_grad()
            self.scaler.scale(self.net(x).sum()).backward()
            self.scaler.step(self.opt)
trainer = Trainer(nn.Linear(2, 2))
trainer.fit(data)
"""
    (finding,) = (each for each in zerograd.check_source(source, "a.py") if each.certain)
    assert finding.message.startswith("self.scaler.step(self.opt) is not followed by self.scaler.")


def test_a_network_written_out_in_arrays_is_none_of_torch() -> None:
    source = """\
import numpy as np
from importlib import util
def load(name, path):
    spec = util.spec_from_file_location(name, path)
    mod = util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return mod
def smoke(x, y):
    mod = load("a", "b.py")
    model = mod.MLP([2, 16, 2])
    loss_fn = mod.CrossEntropy()
    optimizer = mod.SGD([layer for layer in model.layers if hasattr(layer, "W")], lr=0.1)
    for _ in range(80):
        logits = model.forward(x)
        loss = loss_fn.forward(logits, y)
        grad = loss_fn.backward()
        model.backward(grad)
        optimizer.step()
"""
    assert not zerograd.check_source(source, "arrays.py")
    assert zerograd.check_source(source.replace("numpy", "torch"), "tensors.py")


def test_what_a_program_too_long_to_judge_calls_is_judged_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow, "MOST_NODES", 150)
    train = """\
def train(net, opt, data):
    for x in data:
        net(x).sum().backward()
        opt.step()
"""
    calls = "".join(f"if flags[{n}]:\n    train(net, opt, data)\n" for n in range(40))
    made = "net = nn.Linear(2, 2)\nopt = optim.SGD(net.parameters(), lr=0.1)\n"
    found = zerograd.check_source(SETTING + train + made + calls, "long.py")
    assert [(each.rule.code, each.spot.line) for each in found] == [("ZG101", 7)]


@pytest.mark.parametrize(("clear", "codes"), [("pass", ["ZG101"]), ("small.zero_grad()", [])])
def test_one_network_that_is_too_long_to_follow_leaves_the_others_to_be_judged(
    clear: str, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "MOST_NODES", 4000)
    passes = "".join(
        f"        if flags[{n}]:\n"
        "            large(x).sum().backward()\n"
        "        if flags[-1]:\n"
        "            opt.step()\n"
        for n in range(40)
    )
    source = f"""\
def train(large, small, data, flags):
    opt = optim.SGD(large.parameters(), lr=0.1)
    own = optim.SGD(small.parameters(), lr=0.1)
    for x in data:
{passes}
        {clear}
        small(x).sum().backward()
        own.step()
"""
    found = zerograd.check_source(SETTING + source, "long.py")
    assert [each.rule.code for each in found] == codes
    assert all(each.owner == "own" for each in found)


def test_a_loop_is_judged_though_what_it_calls_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "MOST_NODES", 2000)
    passes = "".join(
        f"        if flags[{n}]:\n"
        "            net(x).sum().backward()\n"
        "        if flags[-1]:\n"
        "            opt.step()\n"
        for n in range(40)
    )
    source = f"""\
def other(net, opt, flags):
    for x in flags:
{passes}
def train(net, opt, data, flags):
    for epoch in range(3):
        if flags:
            other(net, opt, flags)
        else:
            for x in data:
                CLEAR
                net(x).sum().backward()
                opt.step()
"""
    wrong = SETTING + source.replace("CLEAR", "pass")
    found = zerograd.check_source(wrong, "long.py")
    assert [each.rule.code for each in found] == ["ZG101"]
    assert wrong.splitlines()[found[0].spot.line - 1].strip() == "opt.step()"
    assert not zerograd.check_source(
        SETTING + source.replace("CLEAR", "opt.zero_grad()"), "long.py"
    )


def test_what_prepares_or_skips_a_backward_is_none() -> None:
    assert fills_by_name("forward_backward")
    assert not fills_by_name("prepare_for_backward")
    assert not fills_by_name("skip_backward")
    assert fills_by_name("compute_grads_for_batch")
    assert not fills_by_name("extra_compute_grad_fetches")
    assert not fills_by_name("compute_gradient_penalty")


def test_a_function_is_judged_however_many_were_read_before_it() -> None:
    right = "".join(
        f"def train_{number}(net, opt, data):\n"
        "    for x in data:\n"
        "        opt.zero_grad()\n"
        "        net(x).sum().backward()\n"
        "        opt.step()\n"
        for number in range(450)
    )
    wrong = "def train(net, opt, data):\n    for x in data:\n        net(x).sum().backward()\n"
    source = f"{SETTING}{right}{wrong}        opt.step()\n"
    found = [each.rule.code for each in zerograd.check_source(source, "many.py")]
    assert found == ["ZG101"]


def test_a_function_that_is_called_after_too_many_others_is_read_for_itself() -> None:
    wrong = "def train(net, opt, data):\n    for x in data:\n        net(x).sum().backward()\n"
    source = f"{SETTING}{wrong}        opt.step()\ndef look(x):\n    x.backward()\n"
    calls = "".join(f"look({number})\n" for number in range(450))
    made = "net = nn.Linear(2, 2)\nopt = optim.SGD(net.parameters(), lr=0.1)\n"
    found = zerograd.check_source(f"{source}{calls}{made}train(net, opt, [])\n", "many.py")
    assert [(each.rule.code, each.spot.line) for each in found] == [("ZG101", 7)]


def test_many_optimizers_are_compared_with_each_network_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0
    covers = buckets.covers

    def counted(key: str, bucket: str) -> bool:
        nonlocal asked
        asked += 1
        return covers(key, bucket)

    monkeypatch.setattr(buckets, "covers", counted)
    train = """\
def train(make):
    net = nn.Linear(2, 2)
    opt = make(net.parameters())
    for x in data:
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()
"""
    calls = "".join(f"    train(lambda them: optim.SGD(them, lr={n}))\n" for n in range(40))
    assert not zerograd.check_source(f"{SETTING}{train}def main():\n{calls}", "many.py")
    assert 0 < asked <= 4 * 40**2


def test_a_second_unscale_on_one_branch_is_told_of_some_path() -> None:
    source = """\
import torch
def train(net, opt, data, args):
    scaler = torch.amp.GradScaler()
    for x in data:
        opt.zero_grad()
        scaler.scale(net(x).sum()).backward()
        scaler.unscale_(opt)
        if args.clip:
            scaler.unscale_(opt)
        scaler.step(opt)
        scaler.update()
"""
    assert not zerograd.check_source(source, "twice.py")
    (found,) = zerograd.check_source(source, "twice.py", may=True)
    assert (found.rule.code, found.spot.line) == ("ZG302", 9)


def told_on_some_path(source: str) -> list[tuple[str, int]]:
    assert not zerograd.check_source(source, "some.py")
    found = zerograd.check_source(source, "some.py", may=True)
    return [(each.rule.code, each.spot.line) for each in found]


@pytest.mark.parametrize(("made", "told"), [("", [("ZG303", 9)]), ("enabled=args.amp", [])])
def test_a_loss_that_is_not_scaled_on_one_branch_is_told_of_some_path(made, told) -> None:
    source = f"""\
import torch
def train(net, opt, data, args):
    scaler = torch.amp.GradScaler({made})
    for x in data:
        opt.zero_grad()
        if x.sum() > 0:
            scaler.scale(net(x).sum()).backward()
        else:
            net(x).sum().backward()
        scaler.step(opt)
        scaler.update()
"""
    assert told_on_some_path(source) == told


def test_a_step_only_where_something_fails_is_none_on_some_path() -> None:
    source = """\
import torch
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in data:
    net(x).sum().backward()
    try:
        check(x)
    except ValueError:
        opt.step()
    opt.zero_grad()
"""
    assert ("ZG203", 10) in told_on_some_path(source)


@pytest.mark.parametrize(
    ("back", "noted"),
    [
        ("F.mse_loss(net(a * x + b * noise), noise).backward()", True),
        ("F.mse_loss(net(x), a * noise - b * torch.ones(2)).backward()", True),
        ("(F.mse_loss(net(x), noise) * a).backward()", False),
        ("F.mse_loss(net(x), noise).mul(a).backward()", False),
        ("torch.mul(F.mse_loss(net(x), noise), a).backward()", False),
        ("torch.dot(net(x).flatten(), noise.flatten()).backward()", False),
        ("net(x).backward(noise)", False),
        ("net(x).backward(gradient=noise)", False),
        ("torch.autograd.backward([net(x)], [noise])", False),
        ("net(x).mean().backward(retain_graph=True)", True),
        ("net(x).mean().backward(None)", True),
    ],
)
def test_what_multiplies_an_input_is_no_factor_of_the_loss(back: str, noted: bool) -> None:
    source = f"""{SETTING}
def train(net, opt, data, count):
    a, b = torch.rand(1), torch.rand(1)
    while True:
        for _ in range(count):
            x, noise = next(data), torch.randn(2)
            {back}
        opt.step()
        opt.zero_grad()
"""
    found = {each.rule.code for each in zerograd.check_source(source, "a.py", notes=True)}
    assert ("ZG503" in found) is noted
