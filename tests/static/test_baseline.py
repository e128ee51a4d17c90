"""A baseline hides what is known and shows what is new."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zerograd.errors import ConfigError
from zerograd.lifecycle.events import Spot
from zerograd.lifecycle.findings import Finding
from zerograd.rules import BY_CODE
from zerograd.static.baseline import Baseline, write_baseline


def finding(path: str, line: int, code: str = "ZG101") -> Finding:
    return Finding(BY_CODE[code], Spot(path, line), "message", "advice")


TEXTS = {1: "opt.step()", 2: "    opt.step()  ", 3: "other.step()"}


def line_at(each: Finding) -> str:
    return TEXTS[each.spot.line]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return "known.json"


def test_what_was_there_is_hidden_wherever_it_has_moved(path: str) -> None:
    write_baseline(path, [finding("a.py", 1)], line_at)
    assert Baseline(path).new([finding("a.py", 2)], line_at) == []


def test_another_rule_line_or_file_is_new(path: str) -> None:
    write_baseline(path, [finding("a.py", 1)], line_at)
    others = [finding("a.py", 3), finding("b.py", 1), finding("a.py", 1, "ZG102")]
    assert Baseline(path).new(others, line_at) == others


def test_one_more_of_the_same_is_new(path: str) -> None:
    write_baseline(path, [finding("a.py", 1)], line_at)
    both = [finding("a.py", 1), finding("a.py", 2)]
    assert Baseline(path).new(both, line_at) == both[1:]


def test_gone_is_only_what_was_looked_for(path: str) -> None:
    Path("a.py").touch()
    Path("b.py").touch()
    write_baseline(path, [finding("a.py", 1), finding("b.py", 1), finding("b.py", 2)], line_at)
    known = Baseline(path)
    assert known.gone([], ["a.py"], line_at) == 1
    assert known.gone([finding("b.py", 2)], ["./b.py"], line_at) == 1
    assert known.gone([finding("b.py", 1, "ZG102")], ["b.py"], line_at) == 2
    Path("b.py").unlink()  # what was in a file that has gone has gone too
    assert known.gone([], [], line_at) == 2


def test_paths_are_kept_from_the_baselines_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    write_baseline("known.json", [finding("sub/a.py", 1)], line_at)
    assert json.loads(Path("known.json").read_text())["findings"][0]["filename"] == "sub/a.py"
    monkeypatch.chdir(tmp_path / "sub")
    known = Baseline("../known.json")
    assert known.new([finding("a.py", 1)], line_at) == []
    assert known.gone([], ["a.py"], line_at) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "findings": [3]}', "\udcff"])
def test_what_is_no_baseline_is_said_in_one_line(path: str, text: str) -> None:
    Path(path).write_text(text, errors="surrogateescape")
    with pytest.raises(ConfigError) as caught:
        Baseline(path)
    assert str(caught.value).startswith("known.json: ")
    assert "\n" not in str(caught.value)


def test_another_version_is_said(path: str) -> None:
    Path(path).write_text('{"version": 2, "findings": []}')
    with pytest.raises(ConfigError, match="of version 2, not 1"):
        Baseline(path)
