"""Which program notices each corruption.

python -m benchmarks.agreement.noticed --programs 600
"""

from __future__ import annotations

import argparse
import json
import sys
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


def first_to_notice(programs: int) -> dict[str, int | None]:
    """Return for each corruption the first seed that notices it, or None."""
    agreed: dict[int, bool] = {}
    found: dict[str, int | None] = {}
    tried: list[int] = []  # what noticed others, first
    for corruption in corruptions():
        found[corruption.name] = None
        for seed in (*tried, *range(programs)):
            if seed not in agreed:
                agreed[seed] = not disagrees(seed)
            if agreed[seed] and notices(seed, corruption):
                found[corruption.name] = seed
                if seed not in tried:
                    tried.append(seed)
                break
        print(f"{corruption.name}: {found[corruption.name]}", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=600)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    prepare()
    found = first_to_notice(args.programs)
    args.results.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    missed = [name for name, seed in found.items() if seed is None]
    print(f"{len(found)} corruptions, {len(missed)} noticed by no program: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
