"""`zerograd run`: what it refuses, what it shows, how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runtime.processes_under_test import DEADLINE, RUN, call, environment, run_json, write
from zerograd.cli.main import main
from zerograd.errors import MissingTorchError
from zerograd.runtime import supported
from zerograd.trace.reader import read_trace

pytest.importorskip("torch")

FORGETS = """
import sys, torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    net(torch.ones(2, 4)).sum().backward()
    opt.step()
print("trained", round(net.weight.sum().item(), 4))
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""
LEAKS = """
import torch
maker, judge = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
g = torch.optim.SGD(maker.parameters(), lr=0.1)
d = torch.optim.SGD(judge.parameters(), lr=0.1)
judge(maker(torch.ones(1, 2))).sum().backward()
g.step()
judge(torch.ones(1, 2)).sum().backward()
# what the first loss left in the judge is used here
d.step()
print("end")
"""
CLEARS = FORGETS.replace("    opt.step()", "    opt.step()\n    opt.zero_grad()")


def test_the_exit_code_is_the_scripts_own_else_1_if_findings_are_shown(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS, clears=CLEARS)
    assert call(*RUN, "clears.py", cwd=tmp_path).returncode == 0
    assert call(*RUN, "forgets.py", "5", cwd=tmp_path).returncode == 5
    done = call(*RUN, "forgets.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "forgets.py:8:5: ZG101 stale-gradient" in done.stderr
    assert done.stdout.startswith("trained") and done.stdout.count("\n") == 1
    assert "step" in done.stderr.split("Found 1 error.")[1]
    shown = call(*RUN, "--exit-zero", "forgets.py", cwd=tmp_path)
    assert shown.returncode == 0 and "ZG101" in shown.stderr


def test_a_script_that_fails_is_not_called_clean(tmp_path: Path) -> None:
    write(
        tmp_path,
        crashes=CLEARS.replace("sys.exit", "unknown"),
        forgets=FORGETS.replace("sys.exit", "unknown"),
        leaves="raise SystemExit(3)",
    )
    done = call(*RUN, "crashes.py", cwd=tmp_path)
    assert done.returncode == 1 and "No findings" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == "The script ended with NameError; no findings until then. Watched 4 steps."
    done = call(*RUN, "forgets.py", cwd=tmp_path)
    assert "Found 1 error. Watched 4 steps. The script ended with NameError." in done.stderr
    done = call(*RUN, "leaves.py", cwd=tmp_path)
    assert done.returncode == 3
    no_torch = "PyTorch was not imported, so there was nothing to watch."
    end = "The script ended with exit code 3; no findings until then."
    assert done.stderr == f"{end} {no_torch}\n"


def test_a_run_without_a_step_says_so(tmp_path: Path) -> None:
    write(tmp_path, idle="import torch")
    done = call(*RUN, "idle.py", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "No findings. Watched no optimizer step.\n"


def test_notes_are_counted_and_shown_with_all(tmp_path: Path) -> None:
    windows = CLEARS.replace("range(4)", "range(8)").replace(
        "    opt.step()", "    if step % 4 != 3: continue\n    opt.step()"
    )
    write(tmp_path, windows=windows)
    trace = tmp_path / "t.jsonl"
    done = call(*RUN, "--trace", str(trace), "windows.py", cwd=tmp_path)
    assert done.returncode == 0 and "ZG503" not in done.stderr
    assert "No findings (1 note hidden; --all shows it). Watched 2 steps." in done.stderr
    assert read_trace(trace).sections[0].findings == []
    assert "ZG503" in call(*RUN, "--all", "windows.py", cwd=tmp_path).stderr
    raised = call(*RUN, "--policy", "raise", "windows.py", cwd=tmp_path)
    assert raised.returncode == 0, raised.stderr


def test_json_has_the_shape_of_check_and_what_only_a_run_knows(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS)
    (finding,) = run_json(tmp_path, "forgets.py")
    assert finding["code"] == "ZG101" and finding["location"] == {"row": 8, "column": 5}
    assert (finding["step"], finding["rank"], finding["owner"]) == (1, None, "opt")
    assert finding["count"] == 3 and sorted(finding["parameters"]) == ["bias", "weight"]
    assert finding["trail"] and finding["advice"]


def test_json_without_a_file_goes_to_stderr_not_stdout(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS)
    done = call(*RUN, "--format", "json", "--policy", "collect", "forgets.py", cwd=tmp_path)
    assert done.stdout.count("\n") == 1
    assert [each["code"] for each in json.loads(done.stderr)] == ["ZG101"]


def test_sarif_is_written(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS)
    out = tmp_path / "f.sarif"
    call(*RUN, "--format", "sarif", "--output", str(out), "forgets.py", cwd=tmp_path)
    assert json.loads(out.read_text())["runs"][0]["results"][0]["ruleId"] == "ZG101"


def test_policies(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS)
    warned = call(*RUN, "forgets.py", cwd=tmp_path)
    assert "forgets.py:8: GradientWarning: ZG101 stale-gradient" in warned.stderr
    quiet = call(*RUN, "--policy", "collect", "forgets.py", cwd=tmp_path)
    assert "GradientWarning" not in quiet.stderr and "ZG101" in quiet.stderr
    raised = call(*RUN, "--policy", "raise", "forgets.py", cwd=tmp_path)
    assert raised.returncode == 1 and raised.stdout == ""
    assert "GradientError" in raised.stderr and "line 8, in <module>" in raised.stderr
    frames = [line for line in raised.stderr.splitlines() if line.lstrip().startswith("File ")]
    assert not [line for line in frames if os.sep + "zerograd" + os.sep in line]


def test_a_finding_of_the_end_is_in_the_report_though_nothing_is_left_to_raise_it(
    tmp_path: Path,
) -> None:
    write(tmp_path, leaks=LEAKS)
    done = call(*RUN, "--policy", "raise", "leaks.py", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == "end\n"
    assert done.stderr.startswith("leaks.py:10:1: ZG201 leaked-gradient\n")
    assert "Found 1 error. Watched 2 steps." in done.stderr


def test_warnings_as_errors_stop_at_the_users_line(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS)
    strict = [sys.executable, "-W", "error", "-m", "zerograd", "run"]
    done = call(*strict, "forgets.py", cwd=tmp_path)
    assert done.returncode == 1 and "line 8, in <module>" in done.stderr
    assert "zerograd.errors.GradientWarning" in done.stderr


def test_select_and_ignore(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS)
    ignored = call(*RUN, "--ignore", "stale-gradient", "forgets.py", cwd=tmp_path)
    assert ignored.returncode == 0 and "ZG101" not in ignored.stderr
    chosen = call(*RUN, "--select", "ZG4", "forgets.py", cwd=tmp_path)
    assert chosen.returncode == 0 and "ZG101" not in chosen.stderr


def test_zerograd_0_switches_it_off(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS)
    done = call(*RUN, "forgets.py", cwd=tmp_path, env=environment(ZEROGRAD="0"))
    assert done.returncode == 0 and done.stderr == ""


def test_findings_survive_os_exit(tmp_path: Path) -> None:
    write(tmp_path, script=FORGETS.replace("sys.exit(", "import os; os._exit("))
    done = call(*RUN, "--policy", "collect", "script.py", cwd=tmp_path)
    assert done.returncode == 1 and "ZG101" in done.stderr
    assert call(*RUN, "script.py", "9", cwd=tmp_path).returncode == 9


def test_training_in_threads_and_exit_handlers_belongs_to_the_run(tmp_path: Path) -> None:
    script = """
    import atexit, threading, faulty
    threading.Thread(target=faulty.train).start()
    """
    write(tmp_path, script=script)
    (finding,) = run_json(tmp_path, "script.py")
    assert finding["filename"] == "faulty.py" and finding["count"] == 3


def test_a_trace_is_written_and_replaces_an_older_one(tmp_path: Path) -> None:
    write(tmp_path, forgets=FORGETS)
    trace = tmp_path / "t.jsonl"
    trace.write_text("an older trace\n")
    parts = tmp_path / "t.jsonl.parts"
    parts.mkdir()
    (parts / "zerograd-run-old-process-1.jsonl").write_text("left by a killed run\n")
    call(*RUN, "--trace", str(trace), "forgets.py", "3", cwd=tmp_path)
    (section,) = read_trace(trace).sections
    assert section.header.command == ("forgets.py", "3")
    assert [each.event.kind.value for each in section.events] == ["backward", "step"] * 4
    assert [(each.rule.code, each.live and each.live.count) for each in section.findings] == [
        ("ZG101", 3)
    ]
    assert section.end is not None and section.end["exit"] == 3
    assert not parts.exists()
    shown = call(sys.executable, "-m", "zerograd", "report", str(trace), cwd=tmp_path)
    assert "forgets.py:8:5: ZG101" in shown.stdout and "4 windows of 1 backward" in shown.stdout


def test_a_killed_run_leaves_a_trace_that_report_reads(tmp_path: Path) -> None:
    script = FORGETS.replace("range(4)", "range(10**9)").replace(
        "    opt.step()", "    opt.step()\n    if step == 20: print('up', flush=True)"
    )
    write(tmp_path, script=script)
    trace = tmp_path / "t.jsonl"
    process = subprocess.Popen(
        [*RUN, "--trace", str(trace), "--policy", "collect", "script.py"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    until = time.monotonic() + DEADLINE
    while len(read_trace(trace).sections[0].events) <= 40 and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (section,) = read_trace(trace).sections
    assert section.end is None and len(section.events) > 40
    assert main(["report", str(trace), "--format", "html"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.py"], "missing.py: there is no such script."),
        (["nb.ipynb"], "nb.ipynb: a notebook is not run; use zerograd.watch() in it"),
        (["-m", "no_such_module"], "there is no module no_such_module"),
        (["--trace", "no/such/t.jsonl", "script.py"], "--trace no/such/t.jsonl: cannot be written"),
        (["--output", "no/such/f", "script.py"], "--output no/such/f: cannot be written"),
        (["--trace", "f", "--output", "./f", "script.py"], "--output f: is the --trace file"),
        (["--trace", "script", "script"], "--trace script: is the script, which it would replace"),
        (["--output", "script", "script"], "--output script: is the script"),
        (["--select", "ZG999", "script.py"], "ZG999: there is no such rule"),
        ([], "name a script"),
        (["--"], "name a script"),
        (["--", "-m"], "-m: there is no such script."),
    ],
)
def test_what_cannot_work_is_one_clear_line_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("script.py", "script"):
        (tmp_path / name).write_text("open('ran', 'w')\n")
    (tmp_path / "nb.ipynb").write_text("{}")
    assert main(["run", *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert not (tmp_path / "ran").exists()
    if "--select" not in words:  # which also names its neighbours
        assert err.count("\n") == 1


def test_no_torch_is_one_clear_line_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("open('ran', 'w')\n")
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from zerograd.cli.main import main; sys.exit(main(['run', 'script.py']))\n"
    )
    done = call(sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "torch is not installed" in done.stderr and not (tmp_path / "ran").exists()


def test_an_old_torch_is_refused_and_an_untested_one_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "torch"
    old.mkdir()
    (old / "__init__.py").touch()
    (old / "version.py").write_text("__version__ = '1.13.1+cu117'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    saved = sys.modules.pop("torch")
    try:
        with pytest.raises(MissingTorchError, match=r"torch 1\.13\.1\+cu117 is older"):
            supported.torch_version()
    finally:
        sys.modules["torch"] = saved
    assert supported.untested("2.13.0+cpu", "linux") is None
    assert supported.untested("2.99.0", "linux") == "untested with torch 2.99.0"
    assert supported.untested("2.13.0", "darwin") == "untested with platform darwin"


def test_the_installed_torch_is_supported_and_tested() -> None:
    assert supported.untested(supported.torch_version()) is None


def test_a_script_that_changes_folder_still_gets_its_excerpt(tmp_path: Path) -> None:
    write(tmp_path, forgets="import os; os.chdir('/')\n" + FORGETS)
    done = call(*RUN, "forgets.py", cwd=tmp_path)
    assert "forgets.py:9:5: ZG101" in done.stderr
    assert "9 |     opt.step()" in done.stderr


def test_a_python_on_which_torch_was_not_tested_is_named() -> None:
    assert supported.untested("2.13.0", "linux", (3, 99)) == "untested with Python 3.99"
    both = supported.untested("9.9", "linux", (3, 99))
    assert both == "untested with torch 9.9 and Python 3.99"


def test_the_platforms_page_and_the_code_name_the_same_versions() -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/platforms.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| Python, all tests |")]
    named = tuple(tuple(map(int, each.split("."))) for each in re.findall(r"\d+\.\d+", row))
    assert named == supported.TESTED_PYTHONS


def test_a_script_that_may_not_be_read_is_one_clear_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("open('ran', 'w')\n")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert main(["run", "script.py"]) == 2
    assert capsys.readouterr().err == (
        "zerograd: script.py: cannot be read (Permission denied); run a script that can be\n"
    )
    assert not (tmp_path / "ran").exists()
