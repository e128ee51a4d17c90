"""Add up comparisons, and put the sum into words."""

from __future__ import annotations

import os
import platform
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.agreement.compare import Comparison
from benchmarks.agreement.generate import Program
from benchmarks.agreement.same import Said

COUNTERS = ("outcomes", "ways", "read", "may", "seen", "idioms", "themes", "disagreements")
MOST_SEEDS = 60  # kept of each kind of disagreement


@dataclass(slots=True)
class Tally:
    """What many programs came to."""

    programs: int = 0
    runs: int = 0
    ended_by_exception: int = 0
    with_unresolved: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)  # programs with that rule, certain
    may: Counter[str] = field(default_factory=Counter)  # and uncertain
    seen: Counter[str] = field(default_factory=Counter)
    idioms: Counter[str] = field(default_factory=Counter)
    themes: Counter[str] = field(default_factory=Counter)
    disagreements: Counter[str] = field(default_factory=Counter)
    seeds: dict[str, list[int]] = field(default_factory=dict)

    def take(self, program: Program, result: Comparison) -> None:
        """Count one program."""
        self.programs += 1
        self.runs += result.runs
        self.ended_by_exception += bool(result.errors)
        self.with_unresolved += bool(result.unresolved)
        self.themes[program.theme] += 1
        self.idioms.update(program.idioms)
        self.read.update(_codes([each for each in result.read if each.certain]))
        self.may.update(_codes([each for each in result.read if not each.certain]))
        self.seen.update(_codes(result.seen))
        self.ways.update(result.ways)
        for name in (
            "confirmed",
            "not_run",
            "traceless",
            "wasted",
            "matched",
            "covered",
            "excused",
        ):
            self.outcomes[name] += len(getattr(result, name))
        for each in result.disagreements:
            self._disagree(f"{each.kind}: {each.code}", program.seed)

    def _disagree(self, kind: str, seed: int) -> None:
        self.disagreements[kind] += 1
        seeds = self.seeds.setdefault(kind, [])
        if len(seeds) < MOST_SEEDS:
            seeds.append(seed)

    def add(self, other: Tally) -> None:
        """Take in what another process counted."""
        for name in ("programs", "runs", "ended_by_exception", "with_unresolved"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for kind, seeds in other.seeds.items():
            self.seeds[kind] = sorted({*self.seeds.get(kind, []), *seeds})[:MOST_SEEDS]

    def to_json(self) -> dict[str, Any]:
        import torch

        return {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
            "seconds": self.seconds,
            "programs": self.programs,
            "runs": self.runs,
            "programs_ended_by_an_exception": self.ended_by_exception,
            "programs_with_unresolved_calls": self.with_unresolved,
            **{name: dict(sorted(getattr(self, name).items())) for name in COUNTERS},
            "seeds": dict(sorted(self.seeds.items())),
        }


def _codes(found: list[Said]) -> set[str]:
    return {each.code for each in found}


def as_text(tally: Tally) -> str:
    """Return the report as Markdown."""
    rules = sorted({*tally.read, *tally.may, *tally.seen})
    rows = [
        f"| {code} | {tally.read[code]} | {tally.may[code]} | {tally.seen[code]} |"
        for code in rules
    ]
    idioms = [f"| {name} | {count} |" for name, count in sorted(tally.idioms.items())]
    outcomes = [f"- {name.replace('_', ' ')}: {tally.outcomes[name]}" for name in tally.outcomes]
    kinds = [f"- {kind}: {count}" for kind, count in tally.disagreements.most_common()]
    return "\n".join(
        [
            "# The two witnesses on the same programs",
            "",
            f"{tally.programs} programs, {tally.runs} runs; in {tally.ended_by_exception} programs "
            f"some run ended by an exception of the program's own, {tally.with_unresolved} held a "
            "call that could not be resolved.",
            "",
            *outcomes,
            f"- disagreements: {sum(tally.disagreements.values())}",
            *(f"  {kind}" for kind in kinds),
            "",
            "| rule | read, certain | read, on some path | seen live |",
            "|---|---|---|---|",
            *rows,
            "",
            "| idiom | programs |",
            "|---|---|",
            *idioms,
            "",
        ]
    )
