"""Write what was missed as a list to work through."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.accuracy.trial import Trial

SHOWN = 40


def write_misses(trials: Sequence[Trial], target: Path) -> None:
    """Group misses by kind and by what was said instead, the largest group first."""
    missed = [
        t for t in trials if t.result not in ("found", "said before") and t.verdict != "equivalent"
    ]
    groups: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in missed:
        groups[(trial.kind, trial.result)].append(trial)
    lines = [f"# Misses: {len(missed)} of {len(trials)} mutants", ""]
    for (kind, result), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        lines += [f"## {kind}: {result} ({len(group)})", ""]
        for number, trial in enumerate(group):
            said = ", ".join(f"{code}@{line}" for line, code in trial.said) or "nothing"
            lines += [
                f"### {trial.repository}/{trial.place} `{trial.unit}` ({trial.detail})",
                f"expected {'/'.join(trial.codes)} at {trial.lines}, said {said}, {trial.verdict}",
            ]
            if number < SHOWN:
                lines += ["```diff", trial.change, "```"]
            lines.append("")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines), encoding="utf-8", errors="replace")
