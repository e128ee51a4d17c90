"""Which program notices each corruption.

python -m benchmarks.agreement.noticed --programs 600
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

from benchmarks.agreement.compare import compare
from benchmarks.agreement.corruptions import Corruption, corruptions
from benchmarks.agreement.generate import generate
from benchmarks.agreement.work import prepare

RESULTS = Path(__file__).parents[1] / "results" / "agreement_corruptions.json"


def disagrees(seed: int) -> bool:
    """Do the witnesses disagree on the program of this seed?"""
    return bool(compare(generate(seed).text).disagreements)


def notices(seed: int, corruption: Corruption) -> bool:
    """Do they disagree once one of them is corrupted?"""
    with corruption.applied():
        try:
            return disagrees(seed)
        except Exception:
            return True  # a witness that breaks down is noticed, too


# What the live witness never asks: it counts the losses of a window itself.
EQUIVALENT = frozenset({"live: clear leaves lost"})
# Where a corruption shows, if it is about something that few programs do.
_THEMES = {
    "assign": "assigned",
    "step in stale": "twice",
    "clear in empty": "lost",
    "closure": "closure",
    "synchronises": "replica",
    "forwarded": "replica",
    "Replicas": "replica",
    "leaf": "leaf",
    "Leaves": "leaf",
    "summed": "window",
    "tail": "window",
    "scal": "amp",
    "clip": "amp",
    "awaiting": "amp",
}


def _likely(name: str, first: int, programs: int) -> Iterator[int]:
    """Yield so many seeds, those of programs that may notice it."""
    theme = next((theme for word, theme in _THEMES.items() if word in name), "")
    seeds = range(first, first + 100 * programs)
    return islice((seed for seed in seeds if theme in ("", generate(seed).theme)), programs)


def _search(task: tuple[str, int | None, int, int]) -> tuple[str, int | None]:
    """Return a seed that notices one corruption: the known one, or the first that is found."""
    name, before, first, programs = task
    corruption = next(each for each in corruptions() if each.name == name)
    known = [] if before is None else [before]
    for seed in dict.fromkeys((*known, *_likely(name, first, programs))):
        if _agree(seed) and notices(seed, corruption):
            return name, seed
    return name, None


@functools.cache
def _agree(seed: int) -> bool:
    return not disagrees(seed)


def first_to_notice(first: int, programs: int, jobs: int, results: Path) -> dict[str, int | None]:
    """Return for each corruption a seed that notices it, or None."""
    known = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    tasks = [(each.name, known.get(each.name), first, programs) for each in corruptions()]
    found: dict[str, int | None] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=prepare) as pool:
        for name, seed in pool.map(_search, tasks):
            found[name] = seed
            print(f"{name}: {seed}", file=sys.stderr)
    results.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=600, help="tried for each corruption")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    found = first_to_notice(args.seed, args.programs, args.jobs, args.results)
    missed = [name for name, seed in found.items() if seed is None and name not in EQUIVALENT]
    print(f"{len(found)} corruptions, {len(missed)} noticed by no program: {missed}")
    print(f"{len(EQUIVALENT)} change nothing, see the tests: {sorted(EQUIVALENT)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
