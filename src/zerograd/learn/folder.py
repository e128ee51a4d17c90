"""The learner's folder: the copies of the starters, and what has been done so far."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from zerograd.errors import UsageError
from zerograd.learn.exercise import Exercise, catalogue

PROGRESS_FILE = ".zerograd-learn.json"
DEFAULT_FOLDER = "zerograd-learn"


@dataclass(slots=True)
class Folder:
    """A folder with one file an exercise; progress lies beside them, so it moves with them.

    >>> import tempfile
    >>> folder = Folder.open(Path(tempfile.mkdtemp()))
    >>> folder.current.name
    'zero-gradients'
    >>> folder.mark_done(folder.current)
    >>> Folder.open(folder.path).current.name
    'none-safe-clear'
    """

    path: Path
    exercises: list[Exercise]
    done: set[str] = field(default_factory=set)
    hints_seen: dict[str, int] = field(default_factory=dict)
    current_name: str = ""

    @classmethod
    def look(cls, path: Path) -> Folder:
        """Return the folder as it is, which may be not yet; nothing is written."""
        folder = cls(path, catalogue())
        folder._read()
        return folder

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Create the folder where needed, copy missing starters, and read the progress."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder = cls.look(path)
            for exercise in folder.exercises:
                if not folder.file(exercise).exists():
                    folder.file(exercise).write_text(exercise.starter(), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{path}: cannot keep the exercises there ({error.strerror}).\n"
                "  Name another folder: zerograd learn FOLDER."
            ) from error
        return folder

    @property
    def current(self) -> Exercise:
        """The exercise to show: the one turned to, else the first one not done."""
        for exercise in self.exercises:
            if exercise.name == self.current_name:
                return exercise
        undone = (one for one in self.exercises if one.name not in self.done)
        return next(undone, self.exercises[-1])

    def file(self, exercise: Exercise) -> Path:
        return self.path / exercise.file_name

    def turn_to(self, exercise: Exercise) -> None:
        self.current_name = exercise.name
        self._write()

    def mark_done(self, exercise: Exercise) -> None:
        self.done.add(exercise.name)
        self._write()

    def next_after(self, exercise: Exercise) -> Exercise | None:
        """Return the next exercise not done, wrapping around; None when all are done."""
        start = self.exercises.index(exercise) + 1
        around = [*self.exercises[start:], *self.exercises[: start - 1]]
        return next((one for one in around if one.name not in self.done), None)

    def next_hint(self, exercise: Exercise) -> tuple[int, str]:
        """Return the next hint and its level; the last one stays."""
        level = min(self.hints_seen.get(exercise.name, 0) + 1, len(exercise.hints))
        self.hints_seen[exercise.name] = level
        self._write()
        return level, exercise.hints[level - 1]

    def reset(self, exercise: Exercise) -> Path:
        """Put the starter back and return where the learner's own text was kept."""
        file = self.file(exercise)
        kept = _unused_name(file)
        if file.exists():
            os.replace(file, kept)
        file.write_text(exercise.starter(), encoding="utf-8")
        self.done.discard(exercise.name)
        self.hints_seen.pop(exercise.name, None)
        self._write()
        return kept

    def _read(self) -> None:
        try:
            kept = json.loads((self.path / PROGRESS_FILE).read_text(encoding="utf-8"))
            self.done = {str(name) for name in kept["done"]}
            self.hints_seen = {str(name): int(level) for name, level in kept["hints"].items()}
            self.current_name = str(kept["current"])
            if self.current_name in self.done:  # a new sitting goes on with what is open
                following = self.next_after(self.current)
                self.current_name = following.name if following else self.current_name
        except OSError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError):
            # a broken progress file costs the ticks, never the learner's own code
            self.done, self.hints_seen, self.current_name = set(), {}, ""

    def _write(self) -> None:
        kept = {"done": sorted(self.done), "hints": self.hints_seen, "current": self.current_name}
        target = self.path / PROGRESS_FILE
        fresh = target.with_suffix(".new")
        fresh.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        os.replace(fresh, target)  # a kill in between leaves the old progress whole


def _unused_name(file: Path) -> Path:
    """Return a name for a backup that overwrites no earlier one."""
    number = 1
    while (kept := file.with_name(f"{file.stem}.{number}.bak")).exists():
        number += 1
    return kept
