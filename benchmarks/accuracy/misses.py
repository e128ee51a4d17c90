"""Write what was missed, and what was said of untouched code, as a list to work through."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.accuracy.checkers import Said
from benchmarks.accuracy.training_code import read_source

if TYPE_CHECKING:
    from benchmarks.accuracy.measure import Trial

SHOWN = 40


def _change(trial: Trial) -> str:
    before = (read_source(trial.mutant.path) or "").split("\n")
    after = trial.mutant.text.split("\n")
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return "\n".join(lines[:60])


def write_misses(
    trials: Sequence[Trial], originals: Sequence[Said], corpus: Path, target: Path
) -> None:
    """Group misses by kind and by what was said instead, the largest group first."""
    missed = [t for t in trials if t.result != "found" and t.verdict != "equivalent"]
    groups: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in missed:
        groups[(trial.mutant.kind, trial.result)].append(trial)
    lines = [f"# Misses: {len(missed)} of {len(trials)} mutants", ""]
    for (kind, result), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        lines += [f"## {kind}: {result} ({len(group)})", ""]
        for trial in group[:SHOWN]:
            mutant = trial.mutant
            said = ", ".join(f"{s.code}@{s.line}" for s in trial.said) or "nothing"
            expected = "/".join(sorted(mutant.codes))
            lines += [
                f"### {trial.repository}/{trial.place} `{mutant.unit}` ({mutant.detail})",
                f"expected {expected} at {sorted(mutant.lines)}, said {said}, {trial.verdict}",
                "```diff",
                _change(trial),
                "```",
                "",
            ]
        if len(group) > SHOWN:
            lines += ["More, without their text:", ""]
            lines += [
                f"- {t.repository}/{t.place} `{t.mutant.unit}` ({t.mutant.detail}), "
                f"expected at {sorted(t.mutant.lines)}"
                for t in group[SHOWN:]
            ]
            lines.append("")
    lines += [f"# Findings on untouched code: {len(originals)}", ""]
    for each in originals:
        lines += [f"## {each.path}:{each.line} {each.code}", each.message, "```python"]
        lines += [*_around(corpus / each.path, each.line), "```", ""]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines), encoding="utf-8")


def _around(path: Path, line: int) -> list[str]:
    if path.suffix == ".ipynb" or not path.exists():
        return ["(a notebook: see the cell named above)"]
    text = (read_source(path) or "").split("\n")
    first, last = max(1, line - 12), min(len(text), line + 6)
    return [f"{n}{'>' if n == line else ' '} {text[n - 1]}" for n in range(first, last + 1)]
