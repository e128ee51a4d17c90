"""What the learner reads. Plain ASCII, so that every terminal can show it."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from zerograd.learn.exercise import Exercise
from zerograd.learn.folder import Folder
from zerograd.learn.process import Verdict

WIDTH = 79  # for reading's sake never more; less in a narrow terminal
_NARROWEST = 30
_ITEM = re.compile(r"( +\S(?:.*?\S)?  +)(\S.*)")  # a word, then what is said of it
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
        self._wrapped("", "Open the file named below in your editor. Each save runs its checks.")

    def exercise(self, folder: Folder, exercise: Exercise) -> None:
        """Show which exercise it is, and the file to edit."""
        self.line()
        self._wrapped("", f"Exercise {exercise.number}: {exercise.title}", _BOLD)
        self.line(f"  edit: {_shown(folder.file(exercise))}")
        self.line()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Say that the checks run, and take it back when they are done."""
        self._say_busy()
        try:
            yield
        finally:
            self._unsay_busy()

    @contextmanager
    def between(self) -> Iterator[None]:
        """Make room for other words while the checks run."""
        self._unsay_busy()
        yield
        self._say_busy()

    def _say_busy(self) -> None:
        if self._out.isatty():
            # What does not fit in one line could not be taken back.
            words = f"running the checks ...   {KEYS}"
            self._out.write(words[: self._width()])
            self._out.flush()

    def _unsay_busy(self) -> None:
        if self._out.isatty():
            self._out.write("\r\x1b[2K")

    def verdict(self, verdict: Verdict) -> None:
        """Show every demand with what came of it, then what to do."""
        if verdict.missing:
            self._wrapped("", f"Not graded: {verdict.missing}", _RED)
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
        self._wrapped("", f"Solved: {exercise.title}.", _GREEN)
        self.line()
        self._prose(exercise.explanation)
        if folder.next_after(exercise) is None:
            self.line()
            self._wrapped(
                "", f"That was the last one. All {len(folder.exercises)} are done.", _BOLD
            )
            self._wrapped("", "Try it on your own code: zerograd check PATH, zerograd run SCRIPT.")

    def hint(self, level: int, of: int, text: str) -> None:
        self.line()
        self.line(f"Hint {level} of {of}:", _BOLD)
        self._wrapped("  ", text)

    def listing(self, folder: Folder) -> None:
        """List every exercise with a mark; `>` is where the learner is."""
        for one in folder.exercises:
            here = ">" if one.name == folder.current.name else " "
            mark = "[x]" if one.name in folder.done else "[ ]"
            note = "" if one.missing() is None else " (needs PyTorch)"
            self._wrapped(f"{here} {mark} {one.number:>2}  {one.name:<21}", f"{one.title}{note}")

    def keys(self, folder: Folder, text: str = KEYS) -> None:
        """End a screen: how far the learner has come, and what can be pressed."""
        done, count = len(folder.done), len(folder.exercises)
        bar = "#" * done + "-" * (count - done)
        self.line()
        self.line(f"[{bar}] {done} of {count} done", _DIM)
        self._wrapped("", text, _DIM)

    def ask(self, text: str) -> None:
        self.line()
        self._wrapped("", text, _DIM)

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
        hang = lead if not lead.strip() else " " * min(len(lead), self._width() // 2)
        for line in textwrap.wrap(
            text,
            self._width(),
            initial_indent=lead,
            subsequent_indent=hang,
            break_on_hyphens=False,
        ):
            self.line(line, colour)

    def _width(self) -> int:
        if not self._out.isatty():
            return WIDTH
        return max(_NARROWEST, min(WIDTH, shutil.get_terminal_size().columns - 1))

    def _prose(self, text: str) -> None:
        """Write paragraphs, each filled anew; what is laid out stays so where it fits."""
        for number, paragraph in enumerate(text.split("\n\n")):
            if number:
                self.line()
            lines = paragraph.splitlines()
            if not paragraph.startswith(" "):
                self._wrapped("", " ".join(lines))
            elif max(map(len, lines)) <= self._width():
                self.line(paragraph)
            else:
                for lead, words in _items(lines):
                    self._wrapped(lead, words)


def _items(lines: list[str]) -> list[tuple[str, str]]:
    """Return the rows of a list in two columns, lines that go on in the second one joined."""
    items: list[tuple[str, str]] = []
    for line in lines:
        found = _ITEM.fullmatch(line)
        indent = len(line) - len(line.lstrip())
        if items and indent >= len(items[-1][0]):
            lead, words = items.pop()
            items.append((lead, f"{words} {' '.join(line.split())}"))
        elif found:
            items.append((found[1], " ".join(found[2].split())))
        else:
            items.append((line[:indent], line.strip()))
    return items


def _shown(path: Path) -> str:
    """Return the path as the learner would type it: relative where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
    return relative if not relative.startswith("..") else str(path)
