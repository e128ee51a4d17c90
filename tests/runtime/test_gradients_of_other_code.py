"""Libraries that compute gradients themselves and add them onto `.grad`, in code of their own."""

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

PACKAGE = """
    import torch

    from descent.writing import accumulate

    def descend(losses, parameters):
        parameters = list(parameters)
        parts = [torch.autograd.grad(each, parameters, retain_graph=True) for each in losses]
        accumulate(parameters, [sum(each) for each in zip(*parts)])
"""
ADDS = """
    def accumulate(parameters, gradients):
        for parameter, gradient in zip(parameters, gradients):
            if parameter.grad is not None:
                parameter.grad += gradient
            else:
                parameter.grad = gradient
"""
PUTS = """
    def accumulate(parameters, gradients):
        for parameter, gradient in zip(parameters, gradients):
            if parameter.grad is not None:
                parameter.grad.copy_(gradient)
            else:
                parameter.grad = gradient.clone()
"""


@pytest.fixture
def package(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder = tmp_path / "site-packages" / "descent"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(dedent(PACKAGE), encoding="utf-8")
    (folder / "writing.py").write_text(dedent(request.param), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    for name in ("descent", "descent.writing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("descent")


def losses_of(net: nn.Module) -> list[torch.Tensor]:
    out = net(torch.randn(4, 3))
    return [(out - 1).pow(2).mean(), (out + 1).pow(2).mean()]


def parts() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = nn.Linear(3, 1)
    return net, torch.optim.SGD(net.parameters(), lr=0.01)


def told(watching: watch) -> list[tuple[str, str, int | None]]:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return [
        (each.rule.code, lines[each.spot.line - 1].strip(), each.live.step)
        for each in watching.findings
    ]


@pytest.mark.parametrize("package", [ADDS], indirect=True)
def test_what_they_add_to_a_gradient_that_is_never_cleared_is_told(package):
    with watch(policy="collect") as watching:
        net, optimizer = parts()
        for _ in range(4):
            package.descend(losses_of(net), net.parameters())
            optimizer.step()
    assert told(watching) == [("ZG101", "optimizer.step()", 1)]
    (finding,) = watching.findings
    trail = [each.code for each in finding.trail]
    assert trail[1].startswith("package.descend(")
    assert finding.live is not None and finding.live.share is None


@pytest.mark.parametrize("package", [ADDS], indirect=True)
def test_what_a_clear_throws_away_of_it_is_told_at_the_clear(package):
    with watch(policy="collect") as watching:
        net, optimizer = parts()
        for _ in range(4):
            package.descend(losses_of(net), net.parameters())
            optimizer.zero_grad()
            optimizer.step()
    assert told(watching) == [("ZG102", "optimizer.zero_grad()", 1)]


@pytest.mark.parametrize("package", [ADDS], indirect=True)
def test_a_clear_before_the_next_keeps_them_silent(package):
    with watch(policy="collect") as watching:
        net, optimizer = parts()
        for _ in range(40):
            optimizer.zero_grad()
            package.descend(losses_of(net), net.parameters())
            optimizer.step()
    assert told(watching) == []


@pytest.mark.parametrize("package", [PUTS], indirect=True)
def test_those_that_put_theirs_in_place_of_what_is_there_need_no_clear(package):
    with watch(policy="collect") as watching:
        net, optimizer = parts()
        for _ in range(40):
            package.descend(losses_of(net), net.parameters())
            optimizer.step()
    assert told(watching) == []
