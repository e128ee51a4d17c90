"""Counts over many rewritten programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.accuracy.rewrites.trial import Outcome

SEVERAL = "several at once"
EXAMPLES = 40


@dataclass(slots=True)
class Row:
    """What became of the programs of one rewrite."""

    right: int = 0  # programs of which nothing was said before
    alarms: int = 0  # of these, those of which something is said now
    faulty: int = 0
    kept: int = 0  # of these, those of which all is still said
    moved: int = 0  # something else is said of the same program
    hidden: int = 0  # faulty ones that were taken out of sight

    def take(self, outcome: Outcome) -> None:
        if not outcome.before:
            self.right += 1
            self.alarms += bool(outcome.invented)
        elif outcome.hidden:
            self.hidden += 1
            self.moved += bool(outcome.invented)
        else:
            self.faulty += 1
            self.kept += not outcome.lost
            self.moved += bool(outcome.invented)


@dataclass(slots=True)
class Tally:
    """All counts of a run."""

    programs: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    run: int = 0  # executed before and after
    differ: list[str] = field(default_factory=list)  # trained otherwise: the rewrite was unsound
    alarms: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)

    def take(self, seed: int, outcome: Outcome) -> None:
        self.programs += 1
        name = outcome.rewrites[0] if len(outcome.rewrites) == 1 else SEVERAL
        self.rows.setdefault(name, Row()).take(outcome)
        told = f"{seed} {outcome.program.name}: {', '.join(outcome.rewrites)}"
        if outcome.invented and not outcome.before:
            self.alarms.append(f"{told}: {sorted(outcome.invented)}")
        if outcome.lost and not outcome.hidden:
            self.losses.append(f"{told}: {sorted(outcome.lost)}")

    def total(self) -> Row:
        every = list(self.rows.values())
        names = ("right", "alarms", "faulty", "kept", "moved", "hidden")
        return Row(*(sum(getattr(row, name) for row in every) for name in names))

    def to_json(self) -> dict[str, Any]:
        return {
            "programs": self.programs,
            "run on torch, before and after": self.run,
            "trained otherwise": self.differ,
            "all": _row(self.total()),
            "rewrites": {name: _row(self.rows[name]) for name in sorted(self.rows)},
            "alarms": self.alarms[:EXAMPLES],
        }


def _row(row: Row) -> dict[str, int]:
    return {
        "right": row.right,
        "alarms": row.alarms,
        "faulty": row.faulty,
        "kept": row.kept,
        "moved": row.moved,
        "hidden": row.hidden,
    }
