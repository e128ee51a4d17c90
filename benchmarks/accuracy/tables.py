"""Add up what was measured, and write it as one result; parts measured apart are joined here.

    python -m benchmarks.accuracy.tables part-1.jsonl part-2.jsonl --results FILE --misses FILE

Each line of a part is one training file with all its mutants.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.accuracy.further import FURTHER
from benchmarks.accuracy.misses import write_misses
from benchmarks.accuracy.mutations import MUTATIONS
from benchmarks.accuracy.trial import FileResult, Trial

Row = dict[str, float | int]


def read_parts(paths: Iterable[Path]) -> list[FileResult]:
    """Return the files of all parts, each once, in the order of their names."""
    found: dict[tuple[str, str], FileResult] = {}
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                result = FileResult.of_data(json.loads(line))
                found[result.repository, result.place] = result
    return [found[key] for key in sorted(found)]


def trials_of(files: Iterable[FileResult]) -> Iterator[Trial]:
    for file in files:
        yield from file.trials


def table(trials: list[Trial]) -> dict[str, Row]:
    """Return one row for each kind of mutation, and one for all."""
    ways = FURTHER if any(t.kind in FURTHER for t in trials) else MUTATIONS
    kinds = [*ways, "all"]
    return {kind: _row([t for t in trials if kind in (t.kind, "all")]) for kind in kinds}


def _row(trials: list[Trial]) -> Row:
    """Return the figures of some mutants.

    A finding that is there without the mutation proves nothing, so these mutants are in
    neither figure; they are counted, and listed by the report.
    """
    tried = [t for t in trials if t.result != "said before"]
    kept = [t for t in tried if t.verdict != "equivalent"]
    found = sum(t.result == "found" for t in tried)
    found_kept = sum(t.result == "found" for t in kept)
    return {
        "mutants": len(tried),
        "found": found,
        "raw_recall": round(found / len(tried), 4) if tried else 0.0,
        "equivalent": len(tried) - len(kept),
        "undecided": sum(t.verdict == "undecided" for t in tried),
        "filtered_recall": round(found_kept / len(kept), 4) if kept else 0.0,
        "right_code_other_line": sum(t.result == "right code, other line" for t in kept),
        "other_code": sum(t.result == "other code" for t in kept),
        "nothing_said": sum(t.result == "nothing said" for t in kept),
        "said_before": len(trials) - len(tried),
    }


def report(files: list[FileResult], sample: str = "") -> dict[str, object]:
    """Return everything a run showed, as plain data."""
    trials = list(trials_of(files))
    refused = Counter(each for file in files for each in file.refused)
    return {
        "sample": sample,
        "repositories": dict(sorted(Counter(file.repository for file in files).items())),
        "training_files": len(files),
        "training_units": sum(file.units for file in files),
        "copies_left_out": sum(file.copies for file in files),
        "recall": table(trials),
        "not_mutated": [
            {"kind": kind, "reason": reason, "units": count}
            for (kind, reason), count in sorted(refused.items())
        ],
        "equivalent": [_named(t) for t in trials if t.verdict == "equivalent"],
        "said_before": [_named(t) for t in trials if t.result == "said before"],
        "check_cpu_seconds": round(sum(file.check_seconds for file in files), 1),
        "execution_cpu_seconds": round(sum(file.execution_seconds for file in files), 1),
    }


def _named(trial: Trial) -> str:
    return f"{trial.kind}: {trial.repository}/{trial.place} {trial.unit} ({trial.detail})"


def write(
    files: list[FileResult], *, results: Path | None, misses: Path | None, sample: str = ""
) -> None:
    """Write the result as JSON and what was missed as a list to work through."""
    if results is not None:
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(json.dumps(report(files, sample), indent=1) + "\n", encoding="utf-8")
    if misses is not None:
        write_misses(list(trials_of(files)), misses)


def shown(files: list[FileResult]) -> str:
    """Return the table for a terminal."""
    lines = [f"{'kind':34} mutants  found    raw  equiv  undec  filtered"]
    for kind, row in table(list(trials_of(files))).items():
        lines.append(
            f"{kind:34} {row['mutants']:7} {row['found']:6} {100 * row['raw_recall']:6.1f} "
            f"{row['equivalent']:6} {row['undecided']:6} {100 * row['filtered_recall']:9.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", type=Path, nargs="+", help="files that --trials wrote")
    parser.add_argument("--results", type=Path, help="JSON file to write")
    parser.add_argument("--misses", type=Path, help="Markdown list of what was missed")
    parser.add_argument("--sample", default="", help="a sentence that says what was measured")
    args = parser.parse_args()
    files = read_parts(args.parts)
    write(files, results=args.results, misses=args.misses, sample=args.sample)
    print(shown(files))


if __name__ == "__main__":
    main()
