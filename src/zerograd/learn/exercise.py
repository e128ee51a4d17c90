"""What an exercise is, and where its files lie inside the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec

from zerograd.errors import UsageError

_EXERCISES = "zerograd.learn.exercises"


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise: its place in the course and every text that is not code.

    The starter and the checks lie beside it as `starter.py` and `checks.py`. What
    the checks demand is read from their docstrings, so that the list a learner
    sees before being graded cannot differ from what is graded.
    """

    number: int
    name: str
    title: str
    hints: tuple[str, str, str]
    explanation: str
    needs_torch: bool = True
    seconds: float = 60.0  # longer than this is taken for an endless loop
    runs_every_check: bool = False  # also those after a failure, where they stand alone
    names_slips: bool = True  # not where to find them is the task

    @property
    def package(self) -> str:
        return f"{_EXERCISES}.{self.name.replace('-', '_')}"

    @property
    def file_name(self) -> str:
        """The name of the learner's copy: numbered, so that a folder lists in order."""
        return f"{self.number:02}_{self.name.replace('-', '_')}.py"

    def starter(self) -> str:
        """Return the unsolved text that is copied into the learner's folder."""
        return files(self.package).joinpath("starter.py").read_text(encoding="utf-8")

    def demands(self) -> list[str]:
        """Return what the checks ask for, one sentence each, without running them."""
        text = files(self.package).joinpath("checks.py").read_text(encoding="utf-8")
        return [demand for _, demand in _demands(ast.parse(text))]

    def missing(self) -> str | None:
        """Return what has to be installed before this exercise can run, if anything."""
        if self.needs_torch and find_spec("torch") is None:
            return "this exercise needs PyTorch: pip install 'zerograd[torch]'"
        return None


def _demands(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
            yield node.name, " ".join((ast.get_docstring(node) or node.name).split())


def catalogue() -> list[Exercise]:
    """Return every exercise, in the order of the course.

    >>> [exercise.name for exercise in catalogue()][:2]
    ['zero-gradients', 'none-safe-clear']
    """
    names: tuple[str, ...] = import_module(_EXERCISES).ORDER
    return [import_module(f"{_EXERCISES}.{name}").EXERCISE for name in names]


def find(word: str) -> Exercise:
    """Return the exercise that `word` means: a name, a number or the learner's file name."""
    exercises = catalogue()
    stem = word.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    for exercise in exercises:
        known = {exercise.name, str(exercise.number), exercise.file_name.removesuffix(".py")}
        if stem in known or stem.replace("_", "-") in known:
            return exercise
    listed = ", ".join(f"{exercise.number} {exercise.name}" for exercise in exercises)
    raise UsageError(f"no exercise is called {word!r}.\n  There are: {listed}.")
