"""Which code counts when it is asked whether a moved leaf may have been updated by hand."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("torch")

from zerograd import watch

FOLLOWED = """
    import copy

    import torch
    from torch import nn
    {imports}

    torch.manual_seed(0)
    net = nn.Linear(4, 4)
    target = copy.deepcopy(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(12):
        loss = (net(torch.randn(8, 4)) - 0.9 * target(torch.randn(8, 4))).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        for p, q in zip(net.parameters(), target.parameters()):
            q.data.copy_(0.1 * p.data + 0.9 * q.data)
"""
BY_HAND = """
    import torch
    from torch import nn
    from zg_first import descend

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    for step in range(12):
        model(torch.randn(8, 4)).pow(2).mean().backward()
        descend(model)
"""
HANDS_ON = "from zg_second import descend\n"
DESCENDS = """
    import torch

    @torch.no_grad()
    def descend(model):
        for p in model.parameters():
            p -= 0.1 * p.grad
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in (("zg_first", HANDS_ON), ("zg_second", DESCENDS)):
        (tmp_path / f"{name}.py").write_text(dedent(text), encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)

    def codes(text: str) -> list[str]:
        script = tmp_path / "script.py"
        script.write_text(dedent(text), encoding="utf-8")
        with watch(policy="collect") as watching:
            runpy.run_path(str(script), run_name="__main__")
        return [each.rule.code for each in watching.findings]

    yield codes
    for name in ("zg_first", "zg_second"):
        sys.modules.pop(name, None)


def test_code_that_is_loaded_but_named_by_no_one_here_updates_nothing(run):
    importlib.import_module("zg_second")
    assert run(FOLLOWED.format(imports="")) == []


def test_code_that_is_named_by_what_the_script_names_may_update(run):
    assert run(BY_HAND) == ["ZG101"]


LIBRARY = """
    import torch

    class Descent{base}:
        def __init__(self, parameters):
            self.held = list(parameters)
            {init}

        def zero_grad(self):
            for p in self.held:
                p.grad = None

        @torch.no_grad()
        def step(self):
            def gradient(p):
                return p.grad

            for p in self.held:
                p -= 0.1 * gradient(p)
"""
THROUGH_A_LIBRARY = """
    import stepper
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = stepper.Descent(model.parameters())
    for step in range(12):
        {clear}
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "site-packages" / "stepper"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder.parent))
    (folder / "__init__.py").write_text("from stepper.steps import Descent\n", encoding="utf-8")

    def make(base: str = "", init: str = "pass") -> None:
        text = dedent(LIBRARY.format(base=base, init=init))
        (folder / "steps.py").write_text(text, encoding="utf-8")

    yield make
    for name in ("stepper", "stepper.steps"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("clear", "codes"), [("", ["ZG101"]), ("optimizer.zero_grad()", [])])
def test_a_library_that_steps_without_torchs_optimizers_updates_by_hand(run, library, clear, codes):
    library()
    assert run(THROUGH_A_LIBRARY.format(clear=clear)) == codes


def test_a_library_whose_optimizer_is_torchs_kind_moves_no_target(run, library):
    library("(torch.optim.Optimizer)", "super().__init__(self.held, {})")
    text = FOLLOWED.format(imports="import stepper").replace("torch.optim.SGD", "stepper.Descent")
    assert run(text.replace(", lr=0.01", "")) == []


def test_a_look_through_numpy_updates_nothing(run):
    look = FOLLOWED.format(imports="import numpy") + (
        "        print(numpy.linalg.norm(target.weight.grad.numpy()))\n"
    )
    assert run(look) == []


def test_an_update_through_numpy_is_one_by_hand(run):
    update = """
        import torch
        w = torch.nn.Parameter(torch.zeros(4, 1))
        for step in range(6):
            (torch.ones(8, 4) @ w - 1).pow(2).mean().backward()
            w.data = torch.from_numpy(w.data.numpy() - 0.1 * w.grad.numpy())
    """
    assert run(update) == ["ZG101"]
