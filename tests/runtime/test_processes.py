"""Processes that a script starts are followed, and speak through the one report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.runtime.processes_under_test import RUN, call, environment, run_json, write
from zerograd.runtime.children import watch_for_unfollowed, why_not_followed
from zerograd.runtime.on_import import when_torch_is_imported
from zerograd.trace.reader import read_trace

pytest.importorskip("torch")

STARTS = """
import multiprocessing, os, subprocess, sys
import faulty
def child(*number):
    faulty.train()
if __name__ == "__main__":
    how, children = sys.argv[1], int(sys.argv[2])
    if how in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(how)
        processes = [context.Process(target=child) for _ in range(children)]
        for process in processes: process.start()
        for process in processes: process.join()
        assert [process.exitcode for process in processes] == [0] * children
    elif how == "torch":
        import torch.multiprocessing
        torch.multiprocessing.spawn(child, nprocs=children)
    elif how == "os.fork":
        if os.fork() == 0:
            faulty.train()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
    elif how == "to the end":
        for _ in range(children):
            if os.fork() == 0:
                faulty.train()
                break
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    elif how == "subprocess":
        subprocess.run([sys.executable, "-c", "import faulty; faulty.train()"], check=True)
    print("parent ends")
"""


@pytest.mark.parametrize(
    ("how", "children"),
    [
        *(("fork", 2), ("spawn", 1), ("forkserver", 1), ("torch", 1)),
        *(("os.fork", 1), ("to the end", 2), ("subprocess", 1)),
    ],
)
def test_children_are_followed_and_reported_once(tmp_path: Path, how: str, children: int) -> None:
    write(tmp_path, starts=STARTS)
    trace = tmp_path / "t.jsonl"
    (finding,) = run_json(tmp_path, "--trace", str(trace), "starts.py", how, str(children))
    assert (finding["code"], finding["filename"]) == ("ZG101", "faulty.py")
    assert finding["count"] == 3 * children  # each child counts its own
    sections = read_trace(trace).sections
    busy = [section for section in sections if section.events]
    assert len(busy) == children and all(section.end is not None for section in busy)
    assert not (tmp_path / "t.jsonl.parts").exists()


def test_the_parents_own_findings_stand_beside_its_childrens(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("with a GPU, torch forbids a backward after a fork")
    script = """
    import os, torch, faulty
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
    if os.fork() == 0:
        faulty.train()
        os._exit(0)
    os.wait()
    """
    write(tmp_path, both=script)
    findings = run_json(tmp_path, "both.py")
    assert [(each["filename"], each["count"]) for each in findings] == [
        ("both.py", 2),
        ("faulty.py", 3),
    ]


def test_a_warning_is_given_once_for_all_processes(tmp_path: Path) -> None:
    write(tmp_path, starts=STARTS)
    done = call(*RUN, "starts.py", "fork", "2", cwd=tmp_path)
    assert done.stderr.count("GradientWarning") == 1
    assert done.stdout == "parent ends\n"


def test_the_users_own_sitecustomize_still_runs_and_children_see_a_clean_path(
    tmp_path: Path,
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.user_was_here = __name__\n")
    script = """
    import subprocess, sys
    code = "import sys; print(sys.user_was_here, [p for p in sys.path if 'follow' in p])"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
    """
    write(tmp_path, script=script)
    done = call(*RUN, "script.py", cwd=tmp_path, env=environment(PYTHONPATH=str(own)))
    assert done.stdout.strip() == "sitecustomize []", done.stderr


def test_children_without_torch_are_left_alone(tmp_path: Path) -> None:
    script = """
    import subprocess, sys
    code = "import sys; print(sorted(m for m in sys.modules if m.startswith('zerograd')))"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
    """
    write(tmp_path, script=script)
    done = call(*RUN, "script.py", cwd=tmp_path)
    seen = done.stdout.strip()
    assert "sanitizer" not in seen and "lifecycle" not in seen and "processes" in seen


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_data_loader_workers_cost_nothing(tmp_path: Path, context: str) -> None:
    script = f"""
    import os, threading, torch
    from torch.utils.data import DataLoader, Dataset
    class Data(Dataset):
        def __len__(self): return 8
        def __getitem__(self, index):
            folder = os.environ["ZEROGRAD_RUN_FOLDER"]
            mine = [f for f in os.listdir(folder) if str(os.getpid()) in f]
            names = [t.name for t in threading.enumerate() if "zerograd" in t.name]
            assert not mine and not names, (mine, names)
            return torch.ones(4)
    if __name__ == "__main__":
        net = torch.nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        for batch in DataLoader(Data(), 2, num_workers=1, multiprocessing_context="{context}"):
            opt.zero_grad()
            net(batch).sum().backward()
            opt.step()
    """
    write(tmp_path, loads=script)
    trace = tmp_path / "t.jsonl"
    assert run_json(tmp_path, "--trace", str(trace), "loads.py", code=0) == []
    assert len(read_trace(trace).sections) == 1


def test_a_python_that_ignores_its_environment_is_said_to_be_not_followed(tmp_path: Path) -> None:
    script = """
    import subprocess, sys
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    subprocess.run([sys.executable, "-c", "pass"], env={}, check=True)
    """
    write(tmp_path, script=script)
    done = call(*RUN, "script.py", cwd=tmp_path)
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if "not followed" in line]
    assert len(lines) == 2
    assert "-I makes Python ignore its environment" in lines[0]
    assert "an environment of its own" in lines[1]


@pytest.mark.parametrize(
    ("args", "followed"),
    [
        (["python", "x.py"], True),
        (["python", "-u", "-W", "error", "-I"], True),  # -I is the value of nothing, but after -W
        (["/usr/bin/python3", "-sE", "x.py"], False),
        (["python3.12", "-S", "x.py"], False),
        (["python", "-c", "print(1)", "-I"], True),
        (["python", "-m", "x", "-I"], True),
        (["bash", "-c", "python -I"], True),
        ("python -I x.py", False),
        (b"python x.py", True),
        (iter(["python", "-I"]), True),  # not ours to use up
    ],
)
def test_which_command_lines_are_followed(args: object, followed: bool) -> None:
    assert (why_not_followed(args, None) == "") is followed


def test_children_with_a_path_of_their_own_are_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    script = """
    import os, subprocess, sys
    for env in ({**os.environ, "PYTHONPATH": "elsewhere"}, None):
        subprocess.run([sys.executable, "-c", "import faulty; faulty.train()"], check=True, env=env)
        os.environ["PYTHONPATH"] = "elsewhere"
    assert os.environ["PYTHONPATH"] == "elsewhere"
    """
    write(tmp_path, starts=script)
    write(tmp_path / "elsewhere")
    (tmp_path / "faulty.py").unlink()
    (finding,) = run_json(tmp_path, "starts.py")
    assert finding["code"] == "ZG101" and finding["count"] == 6


def test_popen_is_itself_again_afterwards() -> None:
    before = subprocess.Popen.__init__
    undo = watch_for_unfollowed(lambda line: None)
    assert subprocess.Popen.__init__ is not before
    undo()
    assert subprocess.Popen.__init__ is before


def test_the_import_hook_leaves_no_trace_on_torch(tmp_path: Path) -> None:
    script = """
    import sys, torch
    print(type(torch.__loader__).__name__, type(torch.__spec__.loader).__name__)
    print([each for each in sys.meta_path if "zerograd" in type(each).__module__])
    """
    write(tmp_path, script=script)
    done = call(*RUN, "script.py", cwd=tmp_path)
    assert done.stdout == "SourceFileLoader SourceFileLoader\n[]\n", done.stderr


def test_a_library_that_asks_whether_torch_is_there_hides_nothing(tmp_path: Path) -> None:
    script = """
    import importlib.util, sys
    assert importlib.util.find_spec("torch") is not None
    assert importlib.util.find_spec("torch").submodule_search_locations
    import faulty
    faulty.train()
    """
    starts = 'import subprocess, sys; subprocess.run([sys.executable, "asks.py"], check=True)'
    write(tmp_path, asks=script, starts=starts)
    for name in ("asks.py", "starts.py"):  # in the run's own process, and in a child
        (finding,) = run_json(tmp_path, name)
        assert finding["code"] == "ZG101" and finding["count"] == 3


def test_several_hooks_all_hear_of_one_import() -> None:
    program = """
    import sys
    from importlib.util import find_spec
    from zerograd.runtime.on_import import when_torch_is_imported
    before, heard = list(sys.meta_path), []
    when_torch_is_imported(lambda: heard.append("first"))
    when_torch_is_imported(lambda: heard.append("second"))
    when_torch_is_imported(lambda: heard.append("third"))()  # cancelled
    assert find_spec("torch") is not None and heard == []
    import torch
    assert sorted(heard) == ["first", "second"] and sys.meta_path == before
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_hook_can_be_cancelled() -> None:
    before = list(sys.meta_path)
    saved = sys.modules.pop("torch")
    try:
        cancel = when_torch_is_imported(lambda: pytest.fail("called"))
        assert len(sys.meta_path) == len(before) + 1
        cancel()
        assert sys.meta_path == before
    finally:
        sys.modules["torch"] = saved


def test_a_broken_watch_does_not_stop_a_child(tmp_path: Path) -> None:
    script = """
    import os, subprocess, sys
    folder = os.environ["ZEROGRAD_RUN_FOLDER"]
    open(os.path.join(folder, "run.json"), "w").write("not json")
    code = "import faulty; faulty.train(); print('trained')"
    subprocess.run([sys.executable, "-c", code], check=True)
    """
    write(tmp_path, script=script)
    done = call(*RUN, "script.py", cwd=tmp_path)
    assert done.returncode == 0 and "trained" in done.stdout
    assert "is not followed" in done.stderr


def test_a_child_that_imports_torch_and_trains_nothing_leaves_nothing(tmp_path: Path) -> None:
    script = """
    import subprocess, sys
    subprocess.run([sys.executable, "-c", "import torch; torch.ones(2).sum()"], check=True)
    """
    write(tmp_path, script=script)
    trace = tmp_path / "t.jsonl"
    assert run_json(tmp_path, "--trace", str(trace), "script.py", code=0) == []
    assert len(read_trace(trace).sections) == 1


def test_a_killed_child_keeps_what_it_had_found(tmp_path: Path) -> None:
    script = """
    import os, pathlib, signal, time, faulty
    def is_kept():
        folder = pathlib.Path(os.environ["ZEROGRAD_RUN_FOLDER"])
        return any('"count": 3' in each.read_text() for each in folder.glob("process-*.json"))
    if os.fork() == 0:
        faulty.train()
        until = time.monotonic() + 120
        while not is_kept() and time.monotonic() < until:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
    """
    write(tmp_path, script=script)
    (finding,) = run_json(tmp_path, "script.py")
    assert finding["code"] == "ZG101" and finding["count"] == 3


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    write(tmp_path, starts=STARTS)
    run_json(tmp_path, "starts.py", "fork", "1", TMPDIR=str(temporary))
    assert [name for name in os.listdir(temporary) if name.startswith("zerograd")] == []
    assert json.loads((tmp_path / "findings.json").read_text())


def test_a_script_that_becomes_another_program_reports_before(tmp_path: Path) -> None:
    script = """
    import os, sys, faulty
    if len(sys.argv) > 1:
        print("second", flush=True)
        raise SystemExit(5)
    faulty.train()
    print("first", flush=True)
    os.execvp(sys.executable, [sys.executable, __file__, "again"])
    """
    write(tmp_path, becomes=script)
    ended = call(*RUN, "--policy", "collect", "becomes.py", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (5, "first\nsecond\n")
    assert ended.stderr.count("ZG101 stale-gradient") == 1
    assert "replaces itself by another program" in ended.stderr
