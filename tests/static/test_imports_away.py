"""Which imports of a file are asked whether they lead to events in other files."""

from __future__ import annotations

from zerograd.static.check import check_paths
from zerograd.static.engine.identity.names import Names

LOOP = """
import json
import os
import helpers
from torch import nn

def main(model, optimizer, loader):
    for x in loader:
        json.dumps(os.getcwd())
        optimizer.zero_grad()
        helpers.back(model(x))
        optimizer.step()
"""


def test_only_what_the_project_holds_is_looked_up(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "helpers.py").write_text("def back(loss):\n    loss.backward()\n")
    asked: list[str] = []
    has = Names.may_be_of_project

    def may_be(self, unit, name):
        known = has(self, unit, name)
        if known:
            asked.append(name)
        return known

    monkeypatch.setattr(Names, "may_be_of_project", may_be)
    check_paths(tmp_path / "train.py")
    assert set(asked) == {"helpers"}
