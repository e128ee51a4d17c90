"""The page as a file: self-contained, and no string of the user's can become code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.report.recorded_runs import SCRIPT, forgetful, record, right
from zerograd.cli.main import main

HOSTILE = (
    '</script><script>window.hacked=1</script><img src=x onerror="hacked=1">&amp;\'"`${1}{{7*7}}'
)


def page(tmp_path: Path, **more: object) -> str:
    trace = record(tmp_path / "t.jsonl", 16, **more)  # type: ignore[arg-type]
    assert main(["report", str(trace), "--format", "html"]) == 0
    return (tmp_path / "t.jsonl.html").read_text(encoding="utf-8")


def data_of(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_page_needs_nothing_from_outside(tmp_path: Path) -> None:
    text = page(tmp_path)
    outside = re.findall(r'(?:src|href)\s*=\s*"(?!#|data:,)([^"]*)"', text)
    assert outside == []
    assert "default-src 'none'" in text
    assert "@import" not in text and "url(" not in text


def test_findings_stand_in_the_page_without_scripts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    text = page(tmp_path, script=str(tmp_path / "train.py"))
    before_scripts = text[: text.index('<script type="application/json"')]
    for words in ("ZG101", "stale-gradient", "opt.step()", "How it came about", "What to do:",
                  "First in iteration 15", "net.weight, net.bias", "About ZG101"):  # fmt: skip
        assert words in before_scripts, words


def test_hostile_names_are_text_everywhere(tmp_path: Path) -> None:
    text = page(tmp_path, script=HOSTILE, parameters=(HOSTILE,), notes=(HOSTILE,))
    assert "<script>window" not in text and "<img src" not in text
    assert text.count("<script") == 2 and text.count("</script") == 2
    assert "{{7*7}}" in text  # the template engine has not run it
    data = data_of(text)
    assert data["sites"][0]["path"] == HOSTILE  # type: ignore[index]


def test_columns_unpack_to_what_was_recorded(tmp_path: Path) -> None:
    (process,) = data_of(page(tmp_path, loop=right))["processes"]  # type: ignore[misc]
    total, iterations = 0, []
    for step in process["iteration"]:
        total += step
        iterations.append(total)
    assert iterations == [number for number in range(16) for _ in range(3)]
    assert process["lanes"][0]["windows"][:2] == [[1, 2, 1], [4, 5, 1]]


def test_folds_and_kills_are_told(tmp_path: Path) -> None:
    trace = record(tmp_path / "t.jsonl", 1_600, right, ended=False)
    assert main(["report", str(trace), "--format", "html"]) == 0
    text = (tmp_path / "t.jsonl.html").read_text(encoding="utf-8")
    assert "525 iterations are folded into counts" in text
    assert "did not end by itself" in text


def test_ranks_are_side_by_side(tmp_path: Path) -> None:
    parts = tmp_path / "t.jsonl.parts"
    parts.mkdir()
    record(parts / "1.jsonl", 16, forgetful, rank=1, world=2)
    text = page(tmp_path, rank=0, world=2)
    assert [each["name"] for each in data_of(text)["processes"]] == ["rank 0", "rank 1"]  # type: ignore[index,union-attr]
    assert "on ranks 0, 1" in text
