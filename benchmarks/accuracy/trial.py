"""Break one training file in every way, check each mutant in its place, and note what is said.

A mutant stands where its original stood, in a copy of its repository, so that the checker sees
the project around it as a user's would. A `.git` folder marks the copy's root: what lies beside
it is none of the project's.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.accuracy.checkers import Said, zerograd
from benchmarks.accuracy.mutants import Mutant, Subject
from benchmarks.accuracy.mutations import MUTATIONS, Mutation, mutate
from benchmarks.accuracy.training_code import Unit, find_units, read_source
from benchmarks.accuracy.verdict import Verdicts, chain_of
from benchmarks.accuracy.worklist import Task

MOST_SECONDS = 60.0  # for one check of one mutant: a tool that takes longer has not found it
DIFF_LINES = 60


@dataclass(slots=True)
class Trial:
    """One mutant, what was said of it, and whether it is really broken; plain data."""

    kind: str
    repository: str
    place: str  # path inside the repository
    unit: str
    detail: str
    codes: list[str]
    lines: list[int]
    said: list[tuple[int, str]]  # line and code
    before: bool  # a finding of these codes at these lines is there without the mutation
    verdict: str
    change: str = ""  # the mutation as a diff, where it was missed

    @property
    def result(self) -> str:
        right = [line for line, code in self.said if code in self.codes]
        if any(line in self.lines for line in right):
            return "said before" if self.before else "found"
        if right:
            return "right code, other line"
        return "other code" if self.said else "nothing said"


@dataclass(slots=True)
class FileResult:
    """What one training file gave."""

    repository: str
    place: str
    units: int
    copies: int
    trials: list[Trial] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)  # kind, reason
    check_seconds: float = 0.0  # CPU
    execution_seconds: float = 0.0  # CPU

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> FileResult:
        trials = [Trial(**each) for each in data["trials"]]
        refused = [(kind, reason) for kind, reason in data["refused"]]
        return cls(**{**data, "trials": trials, "refused": refused})


class TooSlow(BaseException):
    """A check ran past its time; the checker, which survives its own errors, lets it through."""


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise TooSlow inside the block if it computes longer; a hang must not end a measurement.

    Time is that of this process alone: how busy the machine is changes no result.
    """

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


class Workplace:
    """A copy of one repository at a time, for one process, in which files are replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._repository: Path | None = None

    def tree(self, repository: Path) -> Path:
        tree = self._folder / str(os.getpid()) / repository.name
        if self._repository != repository:
            shutil.rmtree(tree.parent, ignore_errors=True)
            shutil.copytree(repository, tree, copy_function=_link_or_copy)
            (tree / ".git").mkdir(exist_ok=True)
            self._repository = repository
        return tree

    def check(self, text: str, target: Path) -> list[Said]:
        """Return what is said of a text that stands at `target`."""
        fresh = target.with_name(f"{target.name}.new")
        fresh.write_text(text, encoding="utf-8", errors="surrogatepass")
        fresh.replace(target)  # the original is a hard link: its content must not be written to
        try:
            with deadline(MOST_SECONDS):
                return zerograd([target])
        except TooSlow:
            return []

    def put_back(self, original: Path, target: Path) -> None:
        target.unlink(missing_ok=True)
        if original.suffix == ".py":
            _link_or_copy(str(original), str(target))


def _change(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=3)
    return "\n".join(list(lines)[2 : 2 + DIFF_LINES])


class Measurer:
    """Measures one file after another in one process."""

    def __init__(
        self,
        folder: Path,
        cache: Path | None,
        *,
        execute: bool,
        ways: Mapping[str, Mutation] = MUTATIONS,
    ) -> None:
        self._ways = ways
        self._workplace = Workplace(folder)
        self._cache = cache
        self._execute = execute

    def measure(self, task: Task) -> FileResult:
        """Break every distinct unit of one file in every way, and check each mutant."""
        result = FileResult(task.repository.name, task.inside, len(task.units), task.copies)
        if not task.units:
            return result
        path = task.path
        target = self._workplace.tree(task.repository) / task.inside
        if path.suffix == ".ipynb":
            target = target.with_name(f"{path.stem}_notebook.py".replace(" ", "_"))
        text = read_source(path)
        assert text is not None
        verdicts = Verdicts(self._cache, task.name)
        original: list[Said] | None = None
        units = find_units(text, path)
        for number in task.units:
            for mutant in mutate(Subject(text, units[number]), self._ways):
                if isinstance(mutant, tuple):
                    result.refused.append(mutant)
                    continue
                started = time.process_time()
                if original is None:
                    original = self._workplace.check(text, target)
                said = self._workplace.check(mutant.text, target)
                checked = time.process_time()
                verdict = self._verdict(verdicts, mutant, units[number])
                result.check_seconds += checked - started
                result.execution_seconds += time.process_time() - checked
                result.trials.append(_trial(task, mutant, said, original, verdict, text))
        self._workplace.put_back(path, target)
        verdicts.save()
        return result

    def _verdict(self, verdicts: Verdicts, mutant: Mutant, unit: Unit) -> str:
        if not self._execute:
            return "not executed"
        try:
            with deadline(MOST_SECONDS):
                return verdicts.of(mutant, chain_of(unit))
        except TooSlow:
            return "undecided"


def _trial(
    task: Task,
    mutant: Mutant,
    said: list[Said],
    original: list[Said],
    verdict: str,
    text: str,
) -> Trial:
    trial = Trial(
        mutant.kind,
        task.repository.name,
        task.inside,
        mutant.unit,
        mutant.detail,
        sorted(mutant.codes),
        sorted(mutant.lines),
        [(each.line, each.code) for each in said],
        any(each.code in mutant.codes and each.line in mutant.origin for each in original),
        verdict,
    )
    if trial.result != "found":
        trial.change = _change(text, mutant.text)
    return trial
