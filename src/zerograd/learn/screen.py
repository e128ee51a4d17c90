"""What the learner reads. Plain ASCII, so that every terminal can show it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from zerograd.learn.exercise import Exercise
from zerograd.learn.folder import Folder
from zerograd.learn.process import Verdict

WIDTH = 80
KEYS = "[h] hint   [l] list   [r] reset   [n] next   [q] quit"
_MARKS = {"passed": "[x]", "failed": "[!]", "waiting": "[ ]"}
_BOLD, _GREEN, _RED, _DIM = "1", "32", "31", "2"


class Screen:
    """Writes to a stream; colours only where the stream is a terminal that wants them."""

    def __init__(self, out: TextIO, *, colour: bool | None = None) -> None:
        self._out = out
        wanted = out.isatty() and "NO_COLOR" not in os.environ
        self._colour = wanted if colour is None else colour

    def clear(self) -> None:
        """Start a fresh screen on a terminal; elsewhere leave a blank line."""
        self._out.write("\x1b[2J\x1b[3J\x1b[H" if self._out.isatty() else "\n")

    def welcome(self, folder: Folder) -> None:
        self.line(f"zerograd learn: the exercises are in {_shown(folder.path)}")
        self.line("Open the file named below in your editor. Each save runs its checks.")

    def exercise(self, folder: Folder, exercise: Exercise) -> None:
        """Show which exercise it is, how far the learner has come, and the file to edit."""
        done, count = len(folder.done), len(folder.exercises)
        bar = "#" * done + "-" * (count - done)
        self.line(f"[{bar}] {done} of {count} done", _DIM)
        self.line()
        self.line(f"Exercise {exercise.number}: {exercise.title}", _BOLD)
        self.line(f"  edit: {_shown(folder.file(exercise))}")
        self.line()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Say that the checks run, and take it back when they are done."""
        if not self._out.isatty():
            yield
            return
        self._out.write("running the checks ...")
        self._out.flush()
        try:
            yield
        finally:
            self._out.write("\r\x1b[2K")

    def verdict(self, exercise: Exercise, verdict: Verdict) -> None:
        """Show every demand with what came of it, then what to do."""
        if verdict.missing:
            self.line(f"Not graded: {verdict.missing}", _RED)
            return
        self.line("The checks demand:")
        for outcome in verdict.outcomes:
            colour = {"passed": _GREEN, "failed": _RED}.get(outcome.state, _DIM)
            self._wrapped(f"  {_MARKS[outcome.state]} ", outcome.demand, colour)
        if verdict.failure is not None:
            self.line()
            for paragraph in verdict.failure.message.splitlines():
                self._wrapped("  ", paragraph, _RED)
        if verdict.printed:
            self.line()
            self.line("  Your code printed:", _DIM)
            self.line(textwrap.indent(verdict.printed, "  | "))

    def solved(self, exercise: Exercise, folder: Folder) -> None:
        self.line()
        done, count = len(folder.done), len(folder.exercises)
        self.line(f"Solved: {exercise.title}. {done} of {count} done.", _GREEN)
        self.line()
        self.line(exercise.explanation)
        self.line()
        if folder.next_after(exercise) is None:
            self.line(f"That was the last one. All {len(folder.exercises)} are done.", _BOLD)
            self.line("Try it on your own code: zerograd check PATH, zerograd run SCRIPT.")

    def hint(self, level: int, of: int, text: str) -> None:
        self.line()
        self.line(f"Hint {level} of {of}:", _BOLD)
        self._wrapped("  ", text)

    def listing(self, folder: Folder) -> None:
        """List every exercise with a mark; `>` is where the learner is."""
        for one in folder.exercises:
            here = ">" if one.name == folder.current.name else " "
            mark = "[x]" if one.name in folder.done else "[ ]"
            note = "" if one.missing() is None else "  (needs PyTorch)"
            self.line(f"{here} {mark} {one.number:>2}  {one.name:<22}{one.title}{note}")

    def keys(self, text: str = KEYS) -> None:
        self.line()
        self.line(text, _DIM)

    def line(self, text: str = "", colour: str = "") -> None:
        if colour and self._colour and text:
            text = f"\x1b[{colour}m{text}\x1b[0m"
        # what a learner's own code printed may hold anything; a '?' beats a crash
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        safe = text.encode(encoding, "replace").decode(encoding)
        self._out.write(safe + "\n")
        self._out.flush()

    def _wrapped(self, lead: str, text: str, colour: str = "") -> None:
        if text.startswith("    "):  # a line of code keeps its shape
            self.line(lead + text, colour)
            return
        for line in textwrap.wrap(
            text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead)
        ):
            self.line(line, colour)


def _shown(path: Path) -> str:
    """Return the path as the learner would type it: relative where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
    return relative if not relative.startswith("..") else str(path)
