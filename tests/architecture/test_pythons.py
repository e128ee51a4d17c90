"""The parts without torch, under every other Python that this machine has."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import WITHOUT_TORCH
from tests.architecture.pythons import OTHERS

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "pythons"
NEEDED = ["pytest>=8", "hypothesis>=6.100", "jsonschema>=4.21", "schemastore>=0.2.3"]
# Not `cli`, which installs things, and not the rooms that are about torch.
PARTS = ["lifecycle", "rules", "static", "report", "trace"]


@pytest.fixture(scope="module", params=OTHERS, ids=lambda other: other.version)
def python(request):
    """An environment of that Python with zerograd and without torch, kept for the next time."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.findall(r"^dependencies = \[.*?^\]", settings, re.MULTILINE | re.DOTALL)
    mark = hashlib.sha256(repr([needed, NEEDED]).encode()).hexdigest()[:12]
    home = CACHE / f"{request.param.version}-{mark}"
    folder = "Scripts" if os.name == "nt" else "bin"
    if not home.exists():
        # Made aside and moved when whole: another process may be making the same one.
        aside = home.with_name(f"{home.name}-{os.getpid()}")
        subprocess.run([request.param.path, "-m", "venv", "--clear", str(aside)], check=True)
        words = ["-m", "pip", "install", "--quiet", "--editable", str(ROOT), *NEEDED]
        subprocess.run([str(aside / folder / "python"), *words], check=True, timeout=600)
        try:
            aside.rename(home)
        except OSError:
            shutil.rmtree(aside)
    return home / folder / "python"


def run(python, *words):
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    env[WITHOUT_TORCH] = "1"
    return subprocess.run(
        [str(python), *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip


@pytest.mark.xdist_group("pythons")
def test_the_tests_of_the_core_pass(python):
    folders = [f"tests/{part}" for part in PARTS if (ROOT / "tests" / part).is_dir()]
    done = run(python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *folders)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.xdist_group("pythons")
def test_the_same_script_gives_the_same_findings(python, tmp_path):
    script = ROOT / "src" / "zerograd" / "demo" / "train.py"
    words = ["-m", "zerograd", "check", str(script), "--all", "--format", "json"]
    here, there = run(sys.executable, *words), run(python, *words)
    assert there.returncode == here.returncode == 1, there.stderr
    assert json.loads(there.stdout) == json.loads(here.stdout)


@pytest.mark.xdist_group("pythons")
@pytest.mark.parametrize(
    "words", [["--help"], ["rules"], ["explain", "ZG101"], ["learn", "--help"]]
)
def test_commands_start(python, words):
    done = run(python, "-m", "zerograd", *words)
    assert (done.returncode, done.stderr) == (0, "")
