"""Loops and optimizers of installed packages: told at the user's own line, in time."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from zerograd import watch  # noqa: E402
from zerograd.runtime import torch_facts  # noqa: E402
from zerograd.runtime.call_site import argument_of  # noqa: E402

PACKAGE = """
    import torch


    def fit(model, optimizer, batches, size, after_each):
        for i, batch in enumerate(batches):
            ends_window = (i + 1) % size == 0
            model(batch).pow(2).mean().div(size).backward()
            if ends_window:
                optimizer.step()
                optimizer.zero_grad()
            else:
                after_each(model)


    class Windows:
        '''Steps when its count says so, in another method than the one that counts.'''

        def __init__(self, optimizer, size):
            self.optimizer, self.size, self.count, self.ends = optimizer, size, 0, False

        def begin(self):
            self.count += 1
            self.ends = self.count % self.size == 0

        def step(self):
            if self.ends:
                self.optimizer.step()


    class Descent:
        '''No optimizer of torch's.'''

        def __init__(self, parameters, rate):
            self.parameters, self.rate = list(parameters), rate

        def step(self):
            with torch.no_grad():
                for each in self.parameters:
                    if each.grad is not None:
                        each.sub_(self.rate * each.grad)

        def zero_grad(self):
            for each in self.parameters:
                each.grad = None
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "somebody_elses.py").write_text(dedent(PACKAGE), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "somebody_elses", raising=False)
    return importlib.import_module("somebody_elses")


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))


def batches(count: int = 6) -> list[torch.Tensor]:
    return [torch.randn(4, 4) for _ in range(count)]


def told(watching: watch) -> list[tuple[str, str]]:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return [(each.rule.code, lines[each.spot.line - 1].strip()) for each in watching.findings]


def test_a_clear_in_each_micro_batch_of_a_trainers_loop_is_told_in_its_second_window(package):
    net = network()

    def clear(model):
        model.zero_grad()

    with watch(policy="collect") as watching:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        package.fit(net, optimizer, batches(4), 2, clear)
    assert told(watching) == [("ZG501", "model.zero_grad()")]


def test_a_trainers_windows_are_silent(package):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with watch(policy="collect") as watching:
        package.fit(net, optimizer, batches(12), 3, lambda model: None)
    assert told(watching) == [] and watching.steps == 4


def test_a_clear_that_no_condition_guards_is_told_in_the_second_window(package):
    net = network()
    with watch(policy="collect") as watching:
        windows = package.Windows(torch.optim.SGD(net.parameters(), lr=0.01), 2)
        for batch in batches(4):
            windows.begin()
            net(batch).pow(2).mean().backward()
            windows.step()
            net.zero_grad()
    assert told(watching) == [("ZG501", "net.zero_grad()")]


def test_a_guard_that_throws_some_batches_away_is_not_told_so_soon(package):
    net = network()
    with watch(policy="collect") as watching:
        windows = package.Windows(torch.optim.SGD(net.parameters(), lr=0.01), 2)
        for n, batch in enumerate(batches(4)):
            windows.begin()
            net(batch).pow(2).mean().backward()
            if n in (0, 2):  # which it dislikes
                net.zero_grad()
                continue
            windows.step()
            windows.optimizer.zero_grad()
    assert told(watching) == []


@pytest.mark.parametrize("clears", [False, True])
def test_an_optimizer_that_is_none_of_torchs_is_told_of_where_it_steps(package, clears):
    net = network()
    optimizer = package.Descent(net.parameters(), 0.01)
    with watch(policy="collect") as watching:
        for batch in batches():
            loss = net(batch).pow(2).mean()
            if clears:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert told(watching) == ([] if clears else [("ZG101", "optimizer.step()")])
    if not clears:
        (finding,) = watching.findings
        assert finding.advice == "clear the gradients of 0.weight and 3 more after each update"


@pytest.mark.parametrize("clears", [False, True])
def test_a_gradient_that_is_made_of_the_stale_one_is_stale(clears):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with watch(policy="collect") as watching:
        for batch in batches():
            if clears:
                optimizer.zero_grad(set_to_none=False)
            net(batch).pow(2).mean().backward()
            for each in net.parameters():
                each.grad = each.grad / 2
            optimizer.step()
    assert told(watching) == ([] if clears else [("ZG101", "optimizer.step()")])


def test_a_gradient_that_is_made_of_another_takes_its_place():
    net, other = network(), network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with watch(policy="collect") as watching:
        for batch in batches():
            other.zero_grad()
            (net(batch) - other(batch)).pow(2).mean().backward()
            for one, two in zip(net.parameters(), other.parameters(), strict=True):
                one.grad = -two.grad
            optimizer.step()
    assert told(watching) == []


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("scaler.step(self.opt)", "self.opt"),
        ("scaler.unscale_(opt)", "opt"),
        ("scaler(loss, opt, clip=1.0)", ""),  # what its first argument is, nobody has said
        ("engine.run(batch, opt)", ""),
    ],
)
def test_an_argument_names_the_optimizer_only_where_an_optimizer_belongs(call, name):
    assert argument_of(call) == name


def test_nobody_joins_where_no_join_is_left():
    from torch.distributed.algorithms.join import Join

    assert hasattr(Join.__exit__, "__code__")
    assert not torch_facts.is_joining()
