"""Compare the checker with the brute-force interpreter on small random programs.

    python -m benchmarks.accuracy.agreement --count 2000 --seed 0

Two things are demanded. Nothing is reported that happens on no path. What happens on
every path is reported. Between these two, a fault on some paths only, the checker may
speak or stay silent: its rule for that is its own. It also stays silent on a program that
sends nothing backward: that only plays with a schedule.

What happens on every path and is told with `--may` only is counted apart, as doubted. That is
a fault of some rounds: each path has such a round, but not each round breaks the rule.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.generate_loops import generate
from benchmarks.accuracy.history import Fault
from benchmarks.accuracy.interpreter import Outcome, explore

# One fault is reported once, under the first of its family that applies.
FAMILIES = (
    frozenset({"ZG101", "ZG201", "ZG402"}),
    frozenset({"ZG102", "ZG401", "ZG501"}),
    frozenset({"ZG301"}),
    frozenset({"ZG302"}),
    frozenset({"ZG303"}),
    frozenset({"ZG304"}),
    frozenset({"ZG305"}),
)
EXECUTED = frozenset().union(*FAMILIES)


def family(code: str) -> frozenset[str]:
    return next((f for f in FAMILIES if code in f), frozenset({code}))


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One thing the two witnesses do not agree on."""

    seed: int
    kind: str  # "invented", "missed" or "doubted"
    code: str
    line: int
    text: str


def said_by_checker(text: str) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return what the checker says for certain, and what it doubts."""
    from zerograd import check_source

    told = check_source(text, "program.py", may=True)
    places = [(each.certain, (each.rule.code, each.spot.line)) for each in told]
    return [at for sure, at in places if sure], [at for sure, at in places if not sure]


def compare(text: str, seed: int = 0, limit: int = 512) -> list[Disagreement] | None:
    """Return the disagreements on one program, or None where it has too many paths."""
    outcome = explore(text, limit=limit)
    if not outcome.complete:
        return None
    said, doubts = said_by_checker(text)
    found = [
        Disagreement(seed, "invented", code, line, text)
        for code, line in said
        if code in EXECUTED and not _happens(code, line, outcome)
    ]
    for code, line in sorted(outcome.every_path):
        fault = outcome.faults[(code, line)]
        if not _reported(fault, said) and ".backward(" in text:
            kind = "doubted" if _reported(fault, doubts) else "missed"
            found.append(Disagreement(seed, kind, code, line, text))
    return found


def _happens(code: str, line: int, outcome: Outcome) -> bool:
    return any(
        fault.code in family(code) and line in fault.lines for fault in outcome.faults.values()
    )


def _reported(fault: Fault, said: list[tuple[str, int]]) -> bool:
    """Tell whether a fault was reported: one report may stand for a family's several."""
    return any(code in family(fault.code) for code, _ in said)


def _compare_seed(seed: int) -> list[Disagreement] | None:
    return compare(generate(seed), seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="programs to print of each kind")
    parser.add_argument("--results", type=Path, help="write the counts there too")
    args = parser.parse_args()
    tally: Counter[str] = Counter()
    shown: Counter[tuple[str, str]] = Counter()
    seeds = range(args.seed, args.seed + args.count)
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
        for result in pool.map(_compare_seed, seeds, chunksize=25):
            tally["programs" if result is not None else "too many paths"] += 1
            for item in result or []:
                tally[f"{item.kind} {item.code}"] += 1
                shown[(item.kind, item.code)] += 1
                if shown[(item.kind, item.code)] <= args.show:
                    print(f"--- seed {item.seed}: {item.kind} {item.code} at line {item.line}")
                    print(_numbered(item.text))
    for name, count in sorted(tally.items()):
        print(f"{count:6} {name}")
    if args.results is not None:
        shape = {"seeds": [seeds[0], seeds[-1]], **dict(sorted(tally.items()))}
        args.results.write_text(json.dumps(shape, indent=2) + "\n", encoding="utf-8")


def _numbered(text: str) -> str:
    return "\n".join(f"{n:3} {line}" for n, line in enumerate(text.splitlines(), 1))


if __name__ == "__main__":
    main()
