"""Which program notices each corruption.

python -m benchmarks.agreement.noticed --programs 600
"""

from __future__ import annotations

import argparse
import json
import sys
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


# Where a corruption shows, if it is about something that few programs do.
_THEMES = {
    "assign": "assigned",
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


def _likely(name: str, programs: int) -> list[int]:
    """Return so many seeds, those of programs that may notice it."""
    theme = next((theme for word, theme in _THEMES.items() if word in name), "")
    if not theme:
        return list(range(programs))
    wanted = (seed for seed in range(100 * programs) if generate(seed).theme == theme)
    return list(islice(wanted, programs))


def first_to_notice(programs: int, results: Path) -> dict[str, int | None]:
    """Return for each corruption a seed that notices it, or None; what is known stays."""
    known = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    agreed: dict[int, bool] = {}
    found: dict[str, int | None] = {}
    for corruption in corruptions():
        before = known.get(corruption.name)
        others = sorted({seed for seed in found.values() if seed is not None})
        first = [] if before is None else [before]
        found[corruption.name] = None
        for seed in dict.fromkeys((*first, *others, *_likely(corruption.name, programs))):
            if seed not in agreed:
                agreed[seed] = not disagrees(seed)
            if agreed[seed] and notices(seed, corruption):
                found[corruption.name] = seed
                break
        print(f"{corruption.name}: {found[corruption.name]}", file=sys.stderr)
        results.write_text(json.dumps({**known, **found}, indent=2) + "\n", encoding="utf-8")
    results.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=600)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    prepare()
    found = first_to_notice(args.programs, args.results)
    missed = [name for name, seed in found.items() if seed is None]
    print(f"{len(found)} corruptions, {len(missed)} noticed by no program: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
