"""Ends that Python's exit handlers do not see, and faults of ours in the way of them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from zerograd.runtime.exits import Exits

BROKEN = """
import os, sys
from zerograd.runtime.exits import Exits

def broken(*given):
    raise RuntimeError("injected")

Exits(broken, broken).put_on()
"""


def run(code):
    words = [sys.executable, "-c", BROKEN + textwrap.dedent(code)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows starts another process for os.exec")
@pytest.mark.parametrize(
    "call",
    [
        "os.execv(sys.executable, words)",
        "os.execve(sys.executable, words, dict(os.environ))",
        "os.execvp(sys.executable, words)",
        "os.execve(os.open(sys.executable, os.O_RDONLY), words, dict(os.environ))",
    ],
)
def test_a_fault_of_ours_keeps_no_program_from_becoming_another(call):
    done = run(f"words = [sys.executable, '-c', 'print(41 + 1)']\n{call}")
    assert (done.returncode, done.stdout) == (0, "42\n")
    assert done.stderr.count("injected") == len(done.stderr.splitlines()) == 1


def test_a_fault_of_ours_changes_no_exit_status():
    done = run("os._exit(7)")
    assert done.returncode == 7
    assert done.stderr.count("injected") == len(done.stderr.splitlines()) == 1


def test_the_functions_of_os_come_back():
    before = (os._exit, os.execv, os.execve)
    exits = Exits(lambda status: status, lambda: None)
    exits.put_on()
    assert os._exit is not before[0]
    exits.take_off()
    assert (os._exit, os.execv, os.execve) == before
