"""Grade a learner's file in a process of its own, with a time limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from zerograd.learn.exercise import Exercise
from zerograd.learn.grading import Outcome

_LOOKS_EVERY = 0.1  # seconds
_PRINTED_LINES = 20  # of what a solution prints, the last ones are shown


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one run of the checks."""

    outcomes: list[Outcome]
    printed: str = ""
    missing: str | None = None  # what must be installed first; nothing was graded then

    @property
    def passed(self) -> bool:
        return bool(self.outcomes) and all(one.state == "passed" for one in self.outcomes)

    @property
    def failure(self) -> Outcome | None:
        return next((one for one in self.outcomes if one.state == "failed"), None)


def _wait() -> None:
    pass


def run_checks(
    exercise: Exercise, path: Path, *, while_waiting: Callable[[], None] = _wait
) -> Verdict:
    """Run an exercise's checks on `path` and return the verdict; it never raises for bad code.

    Args:
        while_waiting: called several times a second; what it raises ends the checks and
            reaches the caller.
    """
    missing = exercise.missing()
    if missing is not None:
        return Verdict([], missing=missing)
    with tempfile.TemporaryDirectory(prefix="zerograd-learn-") as folder:
        result = Path(folder, "result.json")
        command = [sys.executable, "-m", "zerograd.learn.grade", exercise.name, str(path)]
        printed, ended = _run([*command, str(result)], exercise.seconds, while_waiting)
        if result.is_file():
            outcomes = [Outcome(**one) for one in json.loads(result.read_text("utf-8"))]
            return Verdict(outcomes, _tail(printed))
    first, *others = exercise.demands()
    waiting = [Outcome(demand, "waiting") for demand in others]
    return Verdict([Outcome(first, "failed", ended), *waiting], _tail(printed))


def _run(command: list[str], seconds: float, while_waiting: Callable[[], None]) -> tuple[str, str]:
    """Run a command; return what it printed, and in words how it ended."""
    # a session of its own, so that the ranks an exercise starts can be ended with it
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=os.name == "posix",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                printed, _ = process.communicate(timeout=_LOOKS_EVERY)
                break
            except subprocess.TimeoutExpired:
                while_waiting()
            if time.monotonic() > deadline:
                _end(process)
                printed, _ = process.communicate()
                return printed, f"Not finished after {seconds:.0f} s: does a loop never end?"
    except BaseException:  # Ctrl-C at the prompt must not leave the process behind
        _end(process)
        process.wait()
        raise
    return printed, f"The process that ran your code ended early (exit {process.returncode})."


def _end(process: subprocess.Popen[str]) -> None:
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    else:
        process.kill()


def _tail(printed: str) -> str:
    return "\n".join(printed.rstrip().splitlines()[-_PRINTED_LINES:])
