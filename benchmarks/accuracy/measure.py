"""Measure recall on broken loops: every training unit of a corpus, broken in each way that applies.

    python -m benchmarks.accuracy.measure --corpus .scratch/corpus/dev --jobs 16 \\
        --results benchmarks/results/accuracy_development.json --misses .scratch/misses.md

A mutant is found if the checker gives an expected code at an expected line. One process takes
one file at a time. `--shard 2/4` does a quarter of the files, and `--trials` keeps each mutant:
`python -m benchmarks.accuracy.tables` joins such parts into one result, which is the same as
that of one run, however the work was shared. `--ways further` breaks the loops in other ways than
the ten that the page of figures tells of: for steps, scalers, clips and windows.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

from benchmarks.accuracy.further import FURTHER
from benchmarks.accuracy.mutations import MUTATIONS
from benchmarks.accuracy.tables import shown, write
from benchmarks.accuracy.trial import FileResult, Measurer
from benchmarks.accuracy.worklist import Task, sampled, worklist

WAYS = {"ten": MUTATIONS, "further": FURTHER}
_measurer: Measurer | None = None  # of this process


def _start(folder: Path, cache: Path | None, execute: bool, ways: str) -> None:
    global _measurer
    _measurer = Measurer(folder, cache, execute=execute, ways=WAYS[ways])


def _measure(task: Task) -> FileResult:
    assert _measurer is not None
    return _measurer.measure(task)


def sample_of(args: argparse.Namespace) -> str:
    """Say which part of the corpus was measured, and how."""
    said = []
    if args.every > 1:
        said.append(f"One training file in {args.every}, from number {args.offset + 1} on.")
    if args.no_execution:
        said.append("The mutants were not executed, so none is left out as equivalent.")
    return " ".join(said)


def _shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError("write it as 2/4: the second of four")
    return int(number), int(of)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder of repositories")
    parser.add_argument("--results", type=Path, help="JSON file to write")
    parser.add_argument("--misses", type=Path, help="Markdown list of what was missed")
    parser.add_argument("--trials", type=Path, help="file that keeps each mutant, to be joined")
    parser.add_argument("--cache", type=Path, help="folder that keeps the interpreter's verdicts")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1, help="only each n-th training file")
    parser.add_argument("--offset", type=int, default=0, help="the first of these, from 0")
    parser.add_argument("--shard", type=_shard, default=(1, 1), help="a part of these: 2/4")
    parser.add_argument("--no-execution", action="store_true", help="trust every mutant")
    parser.add_argument("--ways", choices=sorted(WAYS), default="ten", help="in which to break")
    parser.add_argument("--only", default="", help="only repositories whose name contains this")
    return parser


def run(tasks: list[Task], pool: Executor, trials: Path | None) -> list[FileResult]:
    """Measure all tasks; each file's trials are written as soon as they are there."""
    files: list[FileResult] = []
    started = told = time.perf_counter()
    if trials is not None:
        trials.parent.mkdir(parents=True, exist_ok=True)
        trials.write_text("")
    for result in pool.map(_measure, tasks):
        files.append(result)
        if trials is not None:
            with trials.open("a", encoding="utf-8") as out:
                out.write(json.dumps(result.as_data()) + "\n")
        now = time.perf_counter()
        if now - told > 10:
            told = now
            mutants = sum(len(file.trials) for file in files)
            print(
                f"{len(files)} of {len(tasks)} files, {mutants} mutants, {now - started:.0f} s",
                flush=True,
            )
    return files


def main() -> None:
    args = arguments().parse_args()
    started = time.perf_counter()
    # Beside the corpus, not in /tmp: hard links do not cross file systems.
    with tempfile.TemporaryDirectory(prefix="accuracy-", dir=args.corpus.parent) as folder:
        setup = (Path(folder), args.cache, not args.no_execution, args.ways)
        with ProcessPoolExecutor(args.jobs, initializer=_start, initargs=setup) as pool:
            tasks = worklist(args.corpus, pool, only=args.only)
            tasks = sampled(tasks, every=args.every, offset=args.offset)
            number, of = args.shard
            tasks = tasks[number - 1 :: of]
            print(f"{len(tasks)} files, {time.perf_counter() - started:.0f} s", flush=True)
            files = run(tasks, pool, args.trials)
    write(files, results=args.results, misses=args.misses, sample=sample_of(args))
    print(shown(files))


if __name__ == "__main__":
    main()
