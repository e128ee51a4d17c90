"""Measure recall on broken loops, and list what is said of the untouched originals.

    python -m benchmarks.accuracy.measure --corpus .scratch/corpus/dev \\
        --results benchmarks/results/accuracy_development.json --misses .scratch/misses.md

Every training unit of the corpus is broken in each way that applies to it. A mutant is
found if the checker gives an expected code at an expected line. Units that are copies of
one another, to the letter of their syntax tree, count once.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.accuracy.checkers import Said, zerograd
from benchmarks.accuracy.misses import write_misses
from benchmarks.accuracy.mutants import Mutant, Subject
from benchmarks.accuracy.mutations import MUTATIONS, mutate
from benchmarks.accuracy.training_code import Unit, training_files
from benchmarks.accuracy.verdict import Verdicts, chain_of


@dataclass(slots=True)
class Trial:
    """One mutant, what was said of it, and whether it is really broken."""

    mutant: Mutant
    repository: str
    place: str  # path inside the repository
    said: list[Said]
    verdict: str

    @property
    def result(self) -> str:
        near = [s for s in self.said if s.line in self.mutant.lines]
        if any(s.code in self.mutant.codes for s in near):
            return "found"
        if any(s.code in self.mutant.codes for s in self.said):
            return "right code, other line"
        return "other code" if self.said else "nothing said"


@dataclass(slots=True)
class Measurement:
    """Everything one run over one half of the corpus showed."""

    repositories: Counter[str] = field(default_factory=Counter)  # training files
    files: int = 0
    units: int = 0
    copies: int = 0
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    trials: list[Trial] = field(default_factory=list)
    originals: list[Said] = field(default_factory=list)
    all_files: int = 0


def distinct_units(repository: Path, seen: set[str]) -> Iterator[tuple[Path, str, list[Unit], int]]:
    """Yield the training files with those of their units that were not met before."""
    for path, text, units in training_files(repository):
        fresh: list[Unit] = []
        for unit in units:
            digest = hashlib.sha1(ast.dump(unit.node).encode()).hexdigest()
            if digest not in seen:
                seen.add(digest)
                fresh.append(unit)
        yield path, text, fresh, len(units) - len(fresh)


def check_mutant(text: str, target: Path) -> list[Said]:
    """Check a mutant in the place of its original, so that its project is around it."""
    fresh = target.with_name(f"{target.name}.new")
    fresh.write_text(text, encoding="utf-8", errors="surrogatepass")
    fresh.replace(target)  # the original is a hard link: its content must not be written to
    return zerograd([target])


def measure_originals(repository: Path, workplace: Path) -> tuple[int, list[Said]]:
    """Return the number of files, and what is said of them as they are."""
    tree = workplace / f"{repository.name}.originals" / repository.name
    shutil.copytree(repository, tree, copy_function=os.link)
    said = [
        Said(
            Path(s.path).resolve().relative_to(tree.parent.resolve()).as_posix(),
            s.line,
            s.code,
            s.message,
        )
        for s in zerograd([tree])
    ]
    files = sum(1 for path in tree.rglob("*") if path.is_file())
    shutil.rmtree(tree.parent)
    return files, said


def measure_file(
    repository: Path,
    workplace: Path,
    path: Path,
    text: str,
    units: list[Unit],
    cache: Path | None,
    execute: bool = True,
) -> tuple[list[Trial], list[tuple[str, str]]]:
    """Break every unit of one file in every way, and check each mutant."""
    tree = workplace / f"{repository.name}.{os.getpid()}"
    if not tree.exists():
        shutil.copytree(repository, tree, copy_function=os.link)
    inside = path.relative_to(repository)
    target = tree / inside
    if path.suffix == ".ipynb":
        target = target.with_name(f"{path.stem}_notebook.py".replace(" ", "_"))
    verdicts = Verdicts(cache)
    trials: list[Trial] = []
    refused: list[tuple[str, str]] = []
    for unit in units:
        chain = chain_of(unit)
        for mutant in mutate(Subject(text, unit)):
            if isinstance(mutant, tuple):
                refused.append(mutant)
                continue
            said = check_mutant(mutant.text, target)
            verdict = verdicts.of(mutant, chain) if execute else "not executed"
            trials.append(Trial(mutant, repository.name, inside.as_posix(), said, verdict))
    target.unlink(missing_ok=True)
    if path.suffix == ".py":
        os.link(path, target)
    if execute:
        verdicts.save()
    return trials, refused


def measure_repository(
    repository: Path,
    workplace: Path,
    seen: set[str],
    cache: Path | None,
    pool: Executor,
    into: Measurement,
    *,
    every: int = 1,
    offset: int = 0,
    execute: bool = True,
) -> None:
    files, said = measure_originals(repository, workplace)
    into.all_files += files
    into.originals += said
    work = []
    for number, (path, text, units, copies) in enumerate(distinct_units(repository, seen)):
        if number % every != offset:
            continue
        into.files += 1
        into.repositories[repository.name] += 1
        into.units += len(units)
        into.copies += copies
        name = hashlib.sha1(str(path.relative_to(repository.parent)).encode()).hexdigest()
        kept = cache / f"{name}.json" if cache is not None else None
        work.append(
            pool.submit(measure_file, repository, workplace, path, text, units, kept, execute)
        )
    for task in work:
        trials, refused = task.result()
        into.trials += trials
        into.refused.update(refused)
    for tree in workplace.glob(f"{repository.name}.*"):
        shutil.rmtree(tree)


def table(measurement: Measurement) -> dict[str, dict[str, float | int]]:
    """Return one row for each kind of mutation, and one for all."""
    rows: dict[str, dict[str, float | int]] = {}
    for kind in [*MUTATIONS, "all"]:
        trials = [t for t in measurement.trials if kind in (t.mutant.kind, "all")]
        kept = [t for t in trials if t.verdict != "equivalent"]
        found = sum(t.result == "found" for t in trials)
        found_kept = sum(t.result == "found" for t in kept)
        rows[kind] = {
            "mutants": len(trials),
            "found": found,
            "raw_recall": round(found / len(trials), 4) if trials else 0.0,
            "equivalent": len(trials) - len(kept),
            "undecided": sum(t.verdict == "undecided" for t in trials),
            "filtered_recall": round(found_kept / len(kept), 4) if kept else 0.0,
            "right_code_other_line": sum(t.result == "right code, other line" for t in kept),
            "other_code": sum(t.result == "other code" for t in kept),
            "nothing_said": sum(t.result == "nothing said" for t in kept),
        }
    return rows


def sample_of(args: argparse.Namespace) -> str:
    """Say which part of the corpus was measured, and how."""
    said = []
    if args.every > 1:
        said.append(f"One training file in {args.every}, from number {args.offset + 1} on.")
    if args.no_execution:
        said.append("The mutants were not executed, so none is left out as equivalent.")
    return " ".join(said)


def report(measurement: Measurement, sample: str = "") -> dict[str, object]:
    return {
        "sample": sample,
        "repositories": dict(sorted(measurement.repositories.items())),
        "files": measurement.all_files,
        "training_files": measurement.files,
        "training_units": measurement.units,
        "copies_left_out": measurement.copies,
        "recall": table(measurement),
        "not_mutated": [
            {"kind": kind, "reason": reason, "units": count}
            for (kind, reason), count in sorted(measurement.refused.items())
        ],
        "equivalent": [
            f"{t.mutant.kind}: {t.repository}/{t.place} {t.mutant.unit} ({t.mutant.detail})"
            for t in measurement.trials
            if t.verdict == "equivalent"
        ],
        "findings_on_originals": [
            f"{s.path}:{s.line}: {s.code} {s.message}" for s in measurement.originals
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder of repositories")
    parser.add_argument("--results", type=Path, help="JSON file to write")
    parser.add_argument("--misses", type=Path, help="Markdown list of what was missed")
    parser.add_argument("--cache", type=Path, help="folder that keeps the interpreter's verdicts")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1, help="only each n-th training file")
    parser.add_argument("--offset", type=int, default=0, help="the first of these, from 0")
    parser.add_argument("--no-execution", action="store_true", help="trust every mutant")
    parser.add_argument("--only", help="only repositories whose name contains this")
    args = parser.parse_args()
    measurement = Measurement()
    seen: set[str] = set()
    started = time.perf_counter()
    # Beside the corpus, not in /tmp: hard links do not cross file systems. A folder of
    # its own with a repository mark keeps an outer .gitignore out of it.
    with (
        tempfile.TemporaryDirectory(prefix="accuracy-", dir=args.corpus.parent) as folder,
        ProcessPoolExecutor(args.jobs) as pool,
    ):
        (Path(folder) / ".git").mkdir()
        for repository in sorted(p for p in args.corpus.iterdir() if p.is_dir()):
            if args.only and args.only not in repository.name:
                continue
            measure_repository(
                repository,
                Path(folder),
                seen,
                args.cache,
                pool,
                measurement,
                every=args.every,
                offset=args.offset,
                execute=not args.no_execution,
            )
            seconds = time.perf_counter() - started
            count = len(measurement.trials)
            print(f"{repository.name}: {count} mutants so far, {seconds:.0f} s", flush=True)
            write(measurement, args)
    print(json.dumps(table(measurement), indent=1))


def write(measurement: Measurement, args: argparse.Namespace) -> None:
    """Write what is known so far, so that a run that is stopped was not for nothing."""
    if args.results:
        args.results.parent.mkdir(parents=True, exist_ok=True)
        args.results.write_text(json.dumps(report(measurement, sample_of(args)), indent=1) + "\n")
    if args.misses:
        write_misses(measurement.trials, measurement.originals, args.corpus, args.misses)


if __name__ == "__main__":
    main()
