"""Findings on untouched public code: `python -m benchmarks.accuracy.originals --corpus FOLDER`.

Checks every repository in the folder as a user would, counts the distinct training files with
the harness' own counter, and writes both to benchmarks/results/originals_NAME.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.accuracy.worklist import distinct_units
from zerograd import __version__, check_paths

RESULTS = Path(__file__).resolve().parents[1] / "results"


def count_training_files(corpus: Path) -> int:
    """Count the files that hold training code which no other file holds as well."""
    seen: set[str] = set()
    return sum(
        sum(1 for _, _, units, _ in distinct_units(repository, seen) if units)
        for repository in sorted(corpus.iterdir())
        if repository.is_dir()
    )


def findings_on(corpus: Path) -> list[str]:
    """Return `place: code message` for all that `zerograd check` says of the folder."""
    said = []
    for finding in check_paths([corpus]).findings:
        spot = finding.spot
        path = Path(spot.path)
        inside = path.relative_to(corpus.resolve() if path.is_absolute() else corpus)
        cell = f":cell {spot.cell}" if spot.cell is not None else ""
        place = f"{inside.as_posix()}{cell}:{spot.line}"
        said.append(f"{place}: {finding.rule.code} {finding.message}")
    return sorted(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--name", required=True, help="which part of the corpus it is")
    args = parser.parse_args()
    result = {
        "part": args.name,
        "zerograd": __version__,
        "repositories": sum(each.is_dir() for each in args.corpus.iterdir()),
        "training_files": count_training_files(args.corpus),
        "findings": findings_on(args.corpus),
    }
    target = RESULTS / f"originals_{args.name.replace('-', '_')}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{target.name}: {result['training_files']} training files")


if __name__ == "__main__":
    main()
