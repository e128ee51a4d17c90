"""Which files of a corpus are broken, and which of their units, decided before any work.

A unit that is a copy of one met before, to the letter of its syntax tree, counts once. What
was met before depends on the order of all files, so the list is made for the whole corpus at
once; how it is then shared among processes or machines changes nothing.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.training_code import Unit, training_files


@dataclass(frozen=True, slots=True)
class Task:
    """One training file, and the numbers of those of its units that are not copies."""

    repository: Path
    inside: str  # path inside the repository
    units: tuple[int, ...]
    copies: int

    @property
    def path(self) -> Path:
        return self.repository / self.inside

    @property
    def name(self) -> str:
        return f"{self.repository.name}/{self.inside}"


def digest(unit: Unit) -> str:
    """Return what two units have in common exactly if one is a copy of the other."""
    return hashlib.sha1(ast.dump(unit.node).encode("utf-8", "surrogatepass")).hexdigest()


def distinct_units(repository: Path, seen: set[str]) -> Iterator[tuple[Path, str, list[Unit], int]]:
    """Yield the training files with those of their units that were not met before."""
    for path, text, units in training_files(repository):
        kept, copies = _not_in([digest(unit) for unit in units], seen)
        yield path, text, [units[number] for number in kept], copies


def _not_in(digests: Iterable[str], seen: set[str]) -> tuple[tuple[int, ...], int]:
    kept, copies = [], 0
    for number, each in enumerate(digests):
        if each in seen:
            copies += 1
        else:
            seen.add(each)
            kept.append(number)
    return tuple(kept), copies


def repositories(corpus: Path, only: str = "") -> list[Path]:
    """Return the repositories of a corpus in order; `only` is part of the wanted names."""
    return sorted(each for each in corpus.iterdir() if each.is_dir() and only in each.name)


def _survey(repository: Path) -> list[tuple[str, list[str]]]:
    return [
        (path.relative_to(repository).as_posix(), [digest(unit) for unit in units])
        for path, _, units in training_files(repository)
    ]


def worklist(corpus: Path, pool: Executor, *, only: str = "") -> list[Task]:
    """Return a task for each training file of the corpus, in order."""
    seen: set[str] = set()
    found = repositories(corpus, only)
    return [
        Task(repository, inside, *_not_in(digests, seen))
        for repository, files in zip(found, pool.map(_survey, found), strict=True)
        for inside, digests in files
    ]


def sampled(tasks: list[Task], *, every: int, offset: int) -> list[Task]:
    """Return each `every`-th file of each repository, from number `offset` on."""
    numbers: dict[Path, int] = {}
    kept = []
    for task in tasks:
        number = numbers[task.repository] = numbers.get(task.repository, -1) + 1
        if number % every == offset:
            kept.append(task)
    return kept
