"""Rewrite programs without changing what they do, and see that the checker says the same.

python -m benchmarks.accuracy.rewrites --programs 20000
python -m benchmarks.accuracy.rewrites --show 185
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.accuracy.rewrites.programs import Program, generated, loops, written
from benchmarks.accuracy.rewrites.tally import Tally
from benchmarks.accuracy.rewrites.trial import Outcome, at_random

RESULTS = Path(__file__).resolve().parents[2] / "results" / "rewrites.json"


def pool() -> list[Program]:
    """Return the programs that are rewritten."""
    return [*written(), *loops(), *generated(300)]


def measure(programs: list[Program], seeds: range, *, run_every: int = 0) -> Tally:
    """Rewrite one program for each seed; run every so-manieth before and after."""
    tally = Tally()
    for seed in seeds:
        outcome = at_random(programs, seed)
        if outcome is None:
            continue
        tally.take(seed, outcome)
        if run_every and outcome.program.runs and seed % run_every == 0:
            _run_both(tally, seed, outcome)
        if seed % 1000 == 999:
            print(f"{tally.programs} programs", file=sys.stderr)
    return tally


def _run_both(tally: Tally, seed: int, outcome: Outcome) -> None:
    from benchmarks.accuracy.rewrites.running import history

    before = history(outcome.program, outcome.program.text)
    after = history(outcome.program, outcome.text)
    tally.run += 1
    if before != after:
        told = f"{seed} {outcome.program.name}: {', '.join(outcome.rewrites)}"
        tally.differ.append(f"{told}: {before[-1] or 'no error'}, {after[-1] or 'no error'}")


def _show(programs: list[Program], seed: int) -> None:
    outcome = at_random(programs, seed)
    if outcome is None:
        print("no program")
        return
    for number, line in enumerate(outcome.text.splitlines(), 1):
        print(f"{number:3} {line}")
    print(outcome.program.name, outcome.rewrites)
    print("before", sorted(outcome.before), "after", sorted(outcome.after))
    print("invented", sorted(outcome.invented), "lost", sorted(outcome.lost))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--run-every", type=int, default=20, help="how many are run on torch")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--as", dest="name", default="now", help="the run's name in the results")
    parser.add_argument("--show", type=int, metavar="SEED", help="one program")
    args = parser.parse_args()
    programs = pool()
    if args.show is not None:
        _show(programs, args.show)
        return 0
    if args.run_every:
        from benchmarks.accuracy.rewrites.running import prepare

        prepare()
    tally = measure(programs, range(args.seed, args.seed + args.programs), run_every=args.run_every)
    known: dict[str, Any] = json.loads(args.results.read_text()) if args.results.exists() else {}
    known[args.name] = tally.to_json()
    args.results.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    total = tally.total()
    print(f"{tally.programs} programs: {total.alarms} alarms on {total.right} right ones;")
    print(f"{total.kept} of {total.faulty} faulty ones still told; {len(tally.differ)} unsound")
    return 1 if total.alarms else 0


if __name__ == "__main__":
    sys.exit(main())
