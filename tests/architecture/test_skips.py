"""No skip hides a failure on a build machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

def test_skipped():
    pytest.skip({reason!r})

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""


def outcome(folder: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider",
         "-c", os.devnull, "--rootdir", str(folder), str(folder / "test_it.py")],
        cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ci", "reason", "code"),
    [
        ("true", "could not import 'pexpect'", 1),
        ("true", "could not import 'torch': libcudart.so, CUDA is not installed", 1),
        ("true", "needs a GPU", 0),
        ("", "could not import 'pexpect'", 0),
    ],
)
def test_a_skip_fails_on_a_build_machine(tmp_path, ci, reason, code):
    done = outcome(tmp_path, TESTS.format(reason=reason), CI=ci)
    assert done.returncode == code, done.stdout


def test_a_module_that_is_skipped_whole_fails_there_too(tmp_path):
    text = "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass\n"
    assert outcome(tmp_path, text, CI="true").returncode == 2
    # 5: nothing was run
    assert outcome(tmp_path, text, CI="").returncode == 5


@pytest.mark.parametrize(("ci", "code"), [("true", 2), ("", 5)])
def test_the_exercises_are_held_to_it_too(tmp_path, ci, code):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['torch'] = None\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         "modules/ml/systems/none-safe-clear/python"],
        cwd=ROOT, env={**os.environ, "CI": ci, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
