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
