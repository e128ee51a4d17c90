"""The wheel in an empty environment outside the checkout, with every command run there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from zerograd.cli.main import COMMANDS
from zerograd.rules import ALL_RULES
from zerograd.rules.describe import module_name

ROOT = Path(__file__).parents[2]
BROKEN = """\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(4):
    loss = model(torch.ones(3, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
print("trained")
"""

pytestmark = pytest.mark.xdist_group("wheel")  # one worker builds it, once


class Installed:
    """An environment with the wheel in it."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder / "env", with_pip=True)
        self._bin = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        self.home = folder / "elsewhere"
        self.home.mkdir()
        self.python("-m", "pip", "install", "--quiet", str(wheel), check=True)

    def _env(self) -> dict[str, str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        return {**env, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}

    def _run(self, words, check=False):
        return subprocess.run(
            words, cwd=self.home, env=self._env(), capture_output=True, text=True,
            timeout=300, check=check, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def python(self, *words, check=False):
        return self._run([str(self._bin / "python"), *words], check=check)

    def zerograd(self, *words):
        return self._run([str(self._bin / "zerograd"), *words])

    def borrow_torch(self) -> None:
        """Let the environment find this one's torch, behind its own packages."""
        lines = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = Path(self.python("-c", lines, check=True).stdout.strip())
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    words = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "-w",
        str(out),
        str(ROOT),
    ]
    subprocess.run(words, check=True, timeout=300)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


@pytest.fixture(scope="module")
def with_torch(wheel, tmp_path_factory):
    pytest.importorskip("torch")
    made = Installed(tmp_path_factory.mktemp("with_torch"), wheel)
    made.borrow_torch()
    return made


def assert_clean(done, code=0):
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_wheel_holds_what_is_needed_at_run_time(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"zerograd/rules/{module_name(rule)}.md" for rule in ALL_RULES} <= names
    assert "zerograd/py.typed" in names
    assert "zerograd/learn/exercises/zero_gradients/starter.py" in names
    assert not {name for name in names if name.startswith(("tests/", "benchmarks/"))}


def test_it_is_not_the_checkout(installed):
    done = installed.python("-c", "import zerograd; print(zerograd.__file__)")
    assert str(ROOT) not in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_tells_its_help(installed, name):
    done = installed.zerograd(name, "--help")
    assert_clean(done)
    assert done.stdout.startswith(f"usage: zerograd {name}")


def test_importing_needs_nothing(installed):
    done = installed.python("-c", "import zerograd; print(zerograd.zero_grad([1.0, 2.0]))")
    assert (done.stdout.strip(), done.stderr) == ("[0.0, 0.0]", "")


def test_check_works_without_torch(installed):
    script = installed.home / "broken.py"
    script.write_text(BROKEN, encoding="utf-8")
    done = installed.zerograd("check", "broken.py", "--format", "json")
    assert_clean(done, 1)
    assert [each["code"] for each in json.loads(done.stdout)] == ["ZG101"]
    assert_clean(installed.zerograd("check", "broken.py", "--format", "sarif"), 1)
    assert_clean(installed.zerograd("check", "broken.py", "--fix"))
    assert_clean(installed.zerograd("check", "broken.py"))


def test_rules_and_explain_work_without_torch(installed):
    assert_clean(installed.zerograd("rules"))
    done = installed.zerograd("explain", "ZG101")
    assert_clean(done)
    assert "Why it hurts" in done.stdout


def test_learn_works_without_torch(installed):
    done = installed.zerograd("learn", "--list")
    assert_clean(done)
    assert done.stdout


def test_lab_writes_its_page(installed):
    assert_clean(installed.zerograd("lab", "--output", "lab.html"))
    assert (installed.home / "lab.html").stat().st_size > 10_000


@pytest.mark.parametrize("words", [["run", "broken.py"], ["bench"]])
def test_what_needs_torch_says_so_in_one_line(installed, words):
    (installed.home / "broken.py").write_text(BROKEN, encoding="utf-8")
    done = installed.zerograd(*words)
    assert_clean(done, 2)
    assert "torch" in done.stderr


# Every command there is: its words, how it ends, and something that it says.
EVERY = {
    "check": (["check", "broken.py"], 1, "ZG101 stale-gradient"),
    "run": (["run", "--trace", "run.trace", "broken.py"], 1, "Watched 4 steps"),
    "report": (["report", "run.trace"], 0, "ZG101 stale-gradient"),
    "explain": (["explain", "stale-gradient"], 0, "Why it hurts"),
    "rules": (["rules"], 0, "ZG901"),
    "bench": (["bench", "--rounds", "3", "--device", "cpu"], 0, "none"),
    "demo": (["demo"], 0, "ZG101"),
    "lab": (["lab", "--output", "lab.html"], 0, "works offline"),
    "learn": (["learn", "--check", "zero-gradients"], 1, "Not written yet"),
}


def test_no_command_is_forgotten_here():
    assert set(EVERY) == set(COMMANDS)


@pytest.fixture(scope="module")
def after_a_run(with_torch):
    (with_torch.home / "broken.py").write_text(BROKEN, encoding="utf-8")
    done = with_torch.zerograd("run", "--trace", "run.trace", "--policy", "collect", "broken.py")
    assert_clean(done, 1)
    assert done.stdout == "trained\n"
    return with_torch


@pytest.mark.parametrize("name", EVERY)
def test_every_command_does_its_work(after_a_run, name):
    words, code, said = EVERY[name]
    done = after_a_run.zerograd(*words)
    assert_clean(done, code)
    assert said in done.stdout + done.stderr
