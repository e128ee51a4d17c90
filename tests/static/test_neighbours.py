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


def test_a_clear_for_a_loss_of_its_own_is_not_for_others(said: Said) -> None:
    loop = LOOP.format(clear="opt.zero_grad(); model(x).sum().backward(); opt.step()")
    assert said(steps=STEP, loop=loop, main=FROM_A_TABLE) == ["ZG101"]


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
