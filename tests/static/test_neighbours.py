"""Who else in the project may clear for a function that steps an optimizer it is handed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from zerograd import check_paths

Said = Callable[..., list[str]]

STEP = (
    "def plain(model, opt, x):\n"
    "    loss = model(x).sum()\n"
    "    loss.backward()\n"
    "    opt.step()\n"
    "    return loss\n"
)
LOOP = (
    "def run(method, model, opt, loader):\n"
    "    for x in loader:\n"
    "        {clear}\n"
    "        method(model, opt, x)\n"
)
FROM_A_TABLE = (
    "from steps import plain\n"
    "from loop import run\n"
    "METHODS = {'plain': plain}\n"
    "def main(name, model, opt, loader):\n"
    "    run(METHODS[name], model, opt, loader)\n"
)
BY_ITS_NAME = (
    "import steps\n"
    "from loop import run\n"
    "def main(name, model, opt, loader):\n"
    "    run(getattr(steps, name), model, opt, loader)\n"
)
IN_PART = (
    "from functools import partial\n"
    "from steps import plain\n"
    "from loop import run\n"
    "def main(model, opt, loader):\n"
    "    run(partial(plain), model, opt, loader)\n"
)
CALLED = (
    "from steps import plain\n"
    "def main(model, opt, loader):\n"
    "    for x in loader:\n"
    "        plain(model, opt, x)\n"
)


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    """Return the codes that are said of some files, checked together."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()

    def codes(**files: str) -> list[str]:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        return [each.rule.code for each in check_paths([str(tmp_path)]).findings]

    return codes


@pytest.mark.parametrize("main", [FROM_A_TABLE, BY_ITS_NAME, IN_PART])
def test_a_function_that_is_handed_on_is_cleared_for_by_its_taker(said: Said, main: str) -> None:
    assert said(steps=STEP, loop=LOOP.format(clear="opt.zero_grad()"), main=main) == []


@pytest.mark.parametrize("main", [FROM_A_TABLE, BY_ITS_NAME, IN_PART])
def test_a_function_that_is_handed_on_and_never_cleared_for_is_told(said: Said, main: str) -> None:
    assert said(steps=STEP, loop=LOOP.format(clear="pass"), main=main) == ["ZG101"]


def test_a_function_called_by_its_name_is_not_cleared_for_by_others(said: Said) -> None:
    loop = LOOP.format(clear="opt.zero_grad()")
    assert said(steps=STEP, loop=loop, main=CALLED) == ["ZG101"]


@pytest.mark.parametrize("clear", ["opt.zero_grad()", "pass  # def x\n        p.grad = None"])
def test_a_clear_for_others_is_told_from_the_functions_around_it(said: Said, clear: str) -> None:
    other = "class A:\n    async def go(self, loss):\n        loss.backward()\n"
    loop = f"{other}{LOOP.format(clear=clear)}{other.replace('A', 'B')}"
    assert said(steps=STEP, loop=loop, main=FROM_A_TABLE) == []


def test_a_clear_for_a_loss_of_its_own_is_not_for_others(said: Said) -> None:
    loop = LOOP.format(clear="opt.zero_grad(); model(x).sum().backward(); opt.step()")
    assert said(steps=STEP, loop=loop, main=FROM_A_TABLE) == ["ZG101"]


@pytest.mark.parametrize(
    ("own", "codes"), [("loss.backward(); opt.step()", ["ZG101"]), ("loss.item()", [])]
)
def test_a_caller_that_steps_on_a_loss_of_its_own_has_cleared_for_that(
    said: Said, tmp_path: Path, own: str, codes: list[str]
) -> None:
    main = (
        "from steps import plain\n"
        "def main(model, opt, loader):\n"
        "    for x in loader:\n"
        "        loss = model.warm(x)\n"
        "        opt.zero_grad()\n"
        f"        {own}\n"
        "        plain(model, opt, x)\n"
    )
    said(steps=STEP, main=main)
    found = check_paths([str(tmp_path / "steps.py")]).findings
    assert [each.rule.code for each in found] == codes


@pytest.mark.parametrize(("asks", "codes"), [("super().train()", []), ("pass", ["ZG101"])])
def test_an_heir_with_a_method_of_its_own_clears_for_itself(
    said: Said, asks: str, codes: list[str]
) -> None:
    plain = (
        "import torch\n"
        "class Plain:\n"
        "    def __init__(self, net):\n"
        "        self.net = net\n"
        "        self.opt = torch.optim.Adam(net.parameters())\n"
        "    def train(self):\n"
        "        self.net.train()\n"
        "        self.net(self.data).sum().backward()\n"
        "        self.opt.step()\n"
    )
    heir = (
        "from plain import Plain\n"
        "class Heir(Plain):\n"
        "    def train(self):\n"
        "        self.net.train()\n"
        "        self.opt.zero_grad()\n"
        f"        {asks}\n"
    )
    assert said(plain=plain, heir=heir) == codes


@pytest.mark.parametrize("name", ["update_once", "update"])
@pytest.mark.parametrize(("clear", "codes"), [("opt.zero_grad()", []), ("pass", ["ZG101"])])
def test_one_who_is_given_an_object_may_clear_around_its_method(
    said: Said, name: str, clear: str, codes: list[str]
) -> None:
    steps = (
        "class Plain:\n"
        "    def __init__(self, model):\n"
        "        self.model = model\n"
        f"    def {name}(self, opt, x):\n"
        "        self.model(x).sum().backward()\n"
        "        opt.step()\n"
    )
    loop = (
        "def run(algo, opt, loader):\n"
        "    for x in loader:\n"
        f"        {clear}\n"
        f"        algo.{name}(opt, x)\n"
    )
    assert said(steps=steps, loop=loop) == codes


@pytest.mark.parametrize(("clear", "codes"), [("self.opt.zero_grad()", []), ("pass", ["ZG101"])])
def test_who_is_handed_an_optimizer_clears_that_one(
    said: Said, clear: str, codes: list[str]
) -> None:
    nets = (
        "class Net(Base):\n"
        "    def train_once(self, loss, opt, schedule):\n"
        "        opt.zero_grad()\n"
        "        loss.backward()\n"
        "        opt.step()\n"
    )
    agent = (
        "import torch\n"
        "class Schedule:\n"
        "    def __init__(self, opt):\n"
        "        self.opt = opt\n"
        "class Agent:\n"
        "    def __init__(self, net, weight):\n"
        "        self.net = net\n"
        "        self.other = torch.optim.Adam(net.parameters())\n"
        "        self.schedule = Schedule(self.other)\n"
        "        self.weight = torch.zeros(1, requires_grad=True)\n"
        "        self.opt = torch.optim.Adam([self.weight])\n"
        "    def learn(self, loader):\n"
        "        for x in loader:\n"
        "            self.net.train_once(self.net(x).sum(), self.other, self.schedule)\n"
        f"            {clear}\n"
        "            (self.weight * x.sum()).sum().backward()\n"
        "            self.opt.step()\n"
    )
    assert said(nets=nets, agent=agent) == codes


def test_modules_that_import_a_name_from_each_other_are_read(said: Said) -> None:
    wrong = "from one import missing\n" + STEP + "for x in data:\n    plain(missing, opt, x)\n"
    one = "from two import *\ndef zero_grad(): pass\n"
    two = "from one import missing\ndef zero_grad(): pass\n"
    assert said(one=one, two=two, main=wrong) == ["ZG101"]
