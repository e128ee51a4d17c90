"""`zerograd report` on real files: every format, every refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report.recorded_runs import forgetful, record, right
from zerograd.cli.main import main


def test_text_goes_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = record(tmp_path / "t.jsonl", 16, notes=("sparse gradients",))
    assert main(["report", str(trace)]) == 0
    out = capsys.readouterr().out
    assert "16 iterations" in out and "not checked: sparse gradients" in out
    assert "train.py:10:1: ZG101 stale-gradient" in out
    assert "first in iteration 15, 12 times" in out


@pytest.mark.parametrize(("number", "words"), [(1, "1 damaged line "), (2, "2 damaged lines ")])
def test_damaged_lines_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int, words: str
) -> None:
    trace = record(tmp_path / "t.jsonl", 3, right)
    lines = trace.read_text().splitlines()
    lines[3:3] = ["[1]"] * number
    trace.write_text("\n".join(lines) + "\n")
    assert main(["report", str(trace)]) == 0
    assert f": {words}passed over.\n" in capsys.readouterr().out


def test_help_says_that_findings_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--help"]) == 0
    assert "Exit codes: 0 shown, whatever was found in the run" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert "1 findings shown by check or run" in " ".join(capsys.readouterr().out.split())


def test_a_run_that_failed_is_not_called_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = record(tmp_path / "t.jsonl", 3, right, exit_code=1)
    assert main(["report", str(trace)]) == 0
    said = capsys.readouterr().out
    assert "No findings" not in said
    assert said.endswith("Process 4000 ended with exit code 1; no findings until then.\n")
    assert main(["report", str(trace), "--format", "html"]) == 0
    page = (tmp_path / "t.jsonl.html").read_text(encoding="utf-8")
    assert "Process 4000 ended with exit code 1." in page
    assert "None until the run ended" in page and "in a right order" not in page


def test_json_holds_processes_lanes_and_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = record(tmp_path / "t.jsonl", 2_000, right, rank=0, world=2)
    assert main(["report", str(trace), "--format", "json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    (process,) = shape["processes"]
    assert (process["iterations"], process["folded"], process["rank"]) == (2_000, 875, 0)
    assert process["ended"] is True and process["lanes"][0]["owner"] == "opt"
    assert shape["findings"] == []


def test_findings_in_json_have_the_shape_of_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = record(tmp_path / "t.jsonl", 16, forgetful)
    assert main(["report", str(trace), "--format", "json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["code"] == "ZG101" and finding["step"] == 15
    assert finding["parameters"] == ["net.weight", "net.bias"] and finding["count"] == 12


def test_the_page_goes_beside_the_trace_unless_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = record(tmp_path / "t.jsonl", 4)
    assert main(["report", str(trace), "--format", "html"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "t.jsonl.html")
    named = tmp_path / "named.html"
    assert main(["report", str(trace), "--format", "html", "--output", str(named)]) == 0
    assert named.read_text() == (tmp_path / "t.jsonl.html").read_text()


def test_open_shows_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    trace = record(tmp_path / "t.jsonl", 4)
    assert main(["report", str(trace), "--format", "html", "--open"]) == 0
    assert opened == [(tmp_path / "t.jsonl.html").as_uri()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.jsonl"], "cannot be read"),
        (["text.jsonl"], "no header"),
        (["t.jsonl", "--open"], "--open shows a page"),
        (["t.jsonl", "--format", "html", "--output", "no/such/folder.html"], "cannot be written"),
        (["t.jsonl", "--output", "t.jsonl"], "--output t.jsonl: is the trace, which it would"),
    ],
)
def test_what_cannot_be_done_is_said_and_ends_with_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "t.jsonl", 4)
    (tmp_path / "text.jsonl").write_text("hello\n")
    assert main(["report", *words]) == 2
    assert said in capsys.readouterr().err
