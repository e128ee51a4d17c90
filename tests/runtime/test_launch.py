"""A script under `zerograd run` sees what it sees under `python`, and ends as it would there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from zerograd.errors import UsageError
from zerograd.runtime.call_site import kind_of_is_user
from zerograd.runtime.launch import Target, without_our_frames

pytest.importorskip("torch")

ZEROGRAD = [sys.executable, "-m", "zerograd", "run"]
DEADLINE = 180  # seconds; a hang is a failure, not a wait


def call(*words: str, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=DEADLINE, **more)


def both(
    tmp_path: Path, script: str, *arguments: str
) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    """Return how the script ends under python, and how under zerograd run."""
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    plain = call(sys.executable, "script.py", *arguments, cwd=tmp_path)
    watched = call(*ZEROGRAD, "script.py", *arguments, cwd=tmp_path)
    return plain, watched


SEES = """
import os, sys
spec = __spec__ and __spec__.name
print(sys.argv, __name__, __file__, sys.path[0], os.getcwd(), spec, __package__)
print(sorted(globals()), type(__loader__).__name__, sys.modules["__main__"].__dict__ is globals())
"""


def test_a_script_sees_its_own_world(tmp_path: Path) -> None:
    words = ["--format", "json", "-m", "--", "--trace", "x", "--help"]
    plain, watched = both(tmp_path, SEES, *words)
    assert plain.stdout == watched.stdout
    assert "--trace" in watched.stdout
    assert (plain.returncode, watched.returncode) == (0, 0)


def test_two_dashes_before_the_script_end_the_options_as_pythons_do(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import sys; print(sys.argv)\n")
    words = ["--", "own.py", "--", "--all", "-m"]
    python, ours = (
        call(*runner, *words, cwd=tmp_path) for runner in ([sys.executable], [*ZEROGRAD, "--all"])
    )
    assert python.stdout == ours.stdout == "['own.py', '--', '--all', '-m']\n"


def test_a_script_may_come_through_standard_input(tmp_path: Path) -> None:
    sees = SEES.replace("type(__loader__)", "__loader__")
    plain = call(sys.executable, "-", "--epochs", "3", cwd=tmp_path, input=sees)
    watched = call(*ZEROGRAD, "-", "--epochs", "3", cwd=tmp_path, input=sees)
    assert plain.stdout == watched.stdout and "--epochs" in watched.stdout, watched.stderr
    faulty = """
import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net(torch.ones(1, 2)).sum().backward()
    opt.step()
"""
    watched = call(*ZEROGRAD, "-", cwd=tmp_path, input=faulty)
    assert watched.returncode == 1
    assert "<stdin>:7" in watched.stderr and "opt.step()" in watched.stderr
    silenced = faulty.replace("opt.step()", "opt.step()  # zerograd: allow[ZG101] on purpose")
    assert call(*ZEROGRAD, "-", cwd=tmp_path, input=silenced).returncode == 0


def test_a_program_on_the_command_line_is_the_users(tmp_path: Path) -> None:
    program = """
import torch, zerograd
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train():
    for _ in range(3):
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
with zerograd.watch(policy="collect") as watch:
    train()
print(*(each.spot for each in watch.findings))
"""
    assert call(sys.executable, "-c", program, cwd=tmp_path).stdout == "<string>:8:9\n"


@pytest.mark.parametrize("name", ["<stdin>", "<python-input-7>", "<ipython-input-1-af>"])
def test_what_is_typed_in_is_the_users(name: str) -> None:
    assert kind_of_is_user(name)
    assert not kind_of_is_user("<frozen runpy>")


def test_a_script_with_a_watch_of_its_own_is_watched(tmp_path: Path) -> None:
    _, watched = both(
        tmp_path,
        """
        import zerograd
        with zerograd.watch(policy="collect") as own:
            import torch
            net = torch.nn.Linear(2, 1)
            opt = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(3):
                net(torch.ones(1, 2)).sum().backward()
                opt.step()
        print(len(own.findings))
        """,
    )
    assert watched.stdout == "1\n"
    assert watched.returncode == 1 and "ZG101" in watched.stderr
    assert "fault of its own" not in watched.stderr


def test_a_module_sees_its_own_world(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "inner.py").write_text(SEES + "from . import __name__ as parent\nprint(parent)\n")
    plain = call(sys.executable, "-m", "package.inner", "-m", "1", cwd=tmp_path)
    watched = call(*ZEROGRAD, "-m", "package.inner", "-m", "1", cwd=tmp_path)
    assert plain.stdout == watched.stdout
    assert "package.inner" in watched.stdout


def test_a_folder_with_a_main_runs(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "__main__.py").write_text("import sys, part; print(part.x, sys.argv, sys.path[0])")
    (folder / "part.py").write_text("x = 7")
    plain = call(sys.executable, "app", "a", cwd=tmp_path)
    watched = call(*ZEROGRAD, "app", "a", cwd=tmp_path)
    assert plain.stdout == watched.stdout != ""


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit()", 0),
        ("sys.exit(0)", 0),
        ("sys.exit(3)", 3),
        ("sys.exit(-1)", 255),
        ("sys.exit(10**30)", 255),
        ("sys.exit('words')", 1),
        ("raise SystemExit(True)", 1),
        ("os._exit(5)", 5),
        ("1 / 0", 1),
    ],
)
def test_the_exit_code_is_the_scripts_own(tmp_path: Path, ending: str, code: int) -> None:
    plain, watched = both(tmp_path, f"import os, sys\n{ending}\n")
    assert plain.returncode == watched.returncode == code
    assert watched.stderr.startswith(plain.stderr)


def test_a_traceback_shows_the_users_frames_only(tmp_path: Path) -> None:
    script = """
    def fall():
        raise ValueError("deep")
    try:
        1 / 0
    except ZeroDivisionError as error:
        try:
            fall()
        except ValueError as inner:
            raise KeyError("outer") from inner
    """
    plain, watched = both(tmp_path, script)
    assert watched.stderr.startswith(plain.stderr)
    assert "zerograd" not in plain.stderr


def test_an_error_in_the_scripts_syntax_reads_as_pythons(tmp_path: Path) -> None:
    plain, watched = both(tmp_path, "def broken(:\n")
    assert watched.stderr.startswith(plain.stderr)
    assert plain.returncode == watched.returncode == 1


def test_threads_pools_and_exit_handlers_run_in_pythons_order(tmp_path: Path) -> None:
    script = """
    import atexit, threading, time
    from concurrent.futures import ThreadPoolExecutor
    atexit.register(print, "first registered")
    atexit.register(print, "second registered")
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
    ThreadPoolExecutor(2).submit(print, "pool").result()
    print("main ends")
    """
    plain, watched = both(tmp_path, script)
    assert plain.stdout == watched.stdout
    assert "second registered\nfirst registered" in watched.stdout


def test_the_scripts_own_excepthook_is_asked(tmp_path: Path) -> None:
    script = "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0\n"
    plain, watched = both(tmp_path, script)
    assert plain.stdout == watched.stdout == "mine ZeroDivisionError\n"


def test_stdout_belongs_to_the_script(tmp_path: Path) -> None:
    plain, watched = both(tmp_path, "print('mine')\n")
    assert plain.stdout == watched.stdout
    assert "No findings" in watched.stderr


TRAINS_WITHOUT = """
import sys, torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train():
    for _ in range(4):
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
"""


def test_an_exception_after_standard_output_was_closed_reads_as_pythons(tmp_path: Path) -> None:
    script = TRAINS_WITHOUT + "train()\nsys.stdout.close()\nraise RuntimeError('boom')\n"
    plain, watched = both(tmp_path, script)
    assert watched.returncode == plain.returncode == 1
    assert plain.stderr in watched.stderr
    assert "During handling" not in watched.stderr
    assert "ZG101 stale-gradient" in watched.stderr


@pytest.mark.parametrize("end", ["sys.stderr.close()", "sys.stderr = None"])
def test_a_script_that_closed_its_standard_error_trains_to_its_end(
    tmp_path: Path, end: str
) -> None:
    script = TRAINS_WITHOUT + f"{end}\ntrain()\nprint(*net.weight.grad.tolist())\nsys.exit('x')\n"
    plain, watched = both(tmp_path, script)
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)
    assert watched.returncode == 1 and watched.stdout
    assert "ZG101 stale-gradient" in watched.stderr  # on the number that it left open


def test_an_interrupt_ends_the_process_by_the_signal(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    process = subprocess.Popen(
        [*ZEROGRAD, "script.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors and "was interrupted; no findings until then" in errors


def test_a_killing_signal_kills_at_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    process = subprocess.Popen([*ZEROGRAD, "script.py"], cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=DEADLINE)  # the script itself takes longer
    process.stdout.close()
    assert process.returncode == -signal.SIGTERM


def test_a_killed_script_leaves_its_findings_in_the_file(tmp_path: Path) -> None:
    script = """
    import os, signal, tempfile, torch
    os.chdir(tempfile.gettempdir())
    model = torch.nn.Linear(2, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
        opt.step()
    os.kill(os.getpid(), signal.SIGKILL)
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    ended = call(*ZEROGRAD, "--output", "found.txt", "script.py", cwd=tmp_path)
    assert ended.returncode == -signal.SIGKILL
    written = (tmp_path / "found.txt").read_text()
    assert "script.py:8:5: ZG101 stale-gradient" in written
    assert "8 |     opt.step()" in written


def test_classes_of_main_can_be_pickled_and_sent_to_spawned_processes(tmp_path: Path) -> None:
    script = """
    import multiprocessing, pickle
    class Thing:
        def __eq__(self, other): return type(self) is type(other)
    def work(thing, queue): queue.put((type(thing).__module__, 7))
    if __name__ == "__main__":
        assert pickle.loads(pickle.dumps(Thing())) == Thing()
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=work, args=(Thing(), queue))
        process.start()
        print(queue.get(timeout=120))
        process.join()
    """
    plain, watched = both(tmp_path, script)
    assert plain.stdout == watched.stdout == "('__mp_main__', 7)\n", watched.stderr


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for target in (
        Target(str(tmp_path / "missing.py")),
        Target(str(tmp_path / "empty")),
        Target("no_such_module_here.inner", is_module=True),
    ):
        with pytest.raises(UsageError):
            target.check()


def test_our_frames_leave_chained_tracebacks_too() -> None:
    try:
        Target("x", is_module=True).check()
    except UsageError as error:
        assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
        without_our_frames(error)
        assert error.__traceback__.tb_next is None
        assert error.__traceback__.tb_frame.f_code.co_filename == __file__


def test_the_environment_of_the_script_is_its_own_but_for_what_leads_children(
    tmp_path: Path,
) -> None:
    script = "import os, json; print(json.dumps({k: v for k, v in os.environ.items()}))"
    (tmp_path / "script.py").write_text(script)
    env = {**os.environ, "PYTHONPATH": "/tmp/mine"}
    plain = call(sys.executable, "script.py", cwd=tmp_path, env=env)
    watched = call(*ZEROGRAD, "script.py", cwd=tmp_path, env=env)
    import json

    before, after = json.loads(plain.stdout), json.loads(watched.stdout)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {"PYTHONPATH", "ZEROGRAD_RUN_FOLDER", "ZEROGRAD_RUN_HOME"}
    assert after["PYTHONPATH"].endswith(os.pathsep + "/tmp/mine")
