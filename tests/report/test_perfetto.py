"""The Perfetto file: valid trace events, on the clock of torch.profiler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.recorded_runs import forgetful, gan, record
from zerograd.cli.main import main


def perfetto(tmp_path: Path, loop: object = forgetful, steps: int = 16) -> dict[str, object]:
    trace = record(tmp_path / "t.jsonl", steps, loop)  # type: ignore[arg-type]
    out = tmp_path / "p.json"
    assert main(["report", str(trace), "--format", "perfetto", "--output", str(out)]) == 0
    return json.loads(out.read_text())


def test_every_event_has_what_the_format_asks_for(tmp_path: Path) -> None:
    events = perfetto(tmp_path, gan)["traceEvents"]
    assert isinstance(events, list)
    for each in events:
        assert each["ph"] in "iXMC" and isinstance(each["pid"], int) and each["name"]
        if each["ph"] != "M":
            assert each["ts"] >= 0
        if each["ph"] == "X":
            assert each["dur"] > 0
        if each["ph"] == "i":
            assert each["s"] in "tpg"


def test_each_owner_has_a_track_of_marks_and_one_of_contents(tmp_path: Path) -> None:
    events = perfetto(tmp_path, gan)["traceEvents"]
    names = [each["args"]["name"] for each in events if each["ph"] == "M"]  # type: ignore[union-attr]
    assert names == [
        "zerograd opt_g",
        "zerograd opt_g: held",
        "zerograd opt_d",
        "zerograd opt_d: held",
    ]


def test_windows_contents_curves_and_findings_are_in_it(tmp_path: Path) -> None:
    events: list[dict[str, object]] = perfetto(tmp_path)["traceEvents"]  # type: ignore[assignment]
    names = [str(each["name"]) for each in events]
    assert names.count("window of 4 backwards") == 4
    assert {"fresh", "spent", "stale", "loss", "ZG101 stale-gradient"} <= set(names)


def test_the_clock_is_that_of_torch_profiler(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    theirs = tmp_path / "profiler.json"
    program = (
        "import torch, sys\n"
        "with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:\n"
        "    torch.ones(3).sum()\n"
        "p.export_chrome_trace(sys.argv[1])\n"
    )
    subprocess.run([sys.executable, "-c", program, str(theirs)], check=True, capture_output=True)
    ours = perfetto(tmp_path)
    profiled = json.loads(theirs.read_text())
    assert profiled["baseTimeNanoseconds"] == ours["baseTimeNanoseconds"]
    their_ts = next(each["ts"] for each in profiled["traceEvents"] if each["ph"] == "X")
    our_ts = next(each["ts"] for each in ours["traceEvents"] if each["ph"] == "i")  # type: ignore[union-attr]
    assert abs(float(their_ts) - our_ts) < 120e6  # recorded within the same two minutes
