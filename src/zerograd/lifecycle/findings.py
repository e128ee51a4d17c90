"""A finding: a rule broken at a spot, with the trail that led there. Data only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zerograd.lifecycle.events import Event, Spot
from zerograd.lifecycle.rule import Rule, RuleKind
from zerograd.lifecycle.state import BucketState

# In a trail, where the loop has come round, or a closure is called again.
NEXT_ROUND, NEXT_CALL = "next iteration: ", "next call of the closure: "
_ALL_BUT_ALL = 0.995  # past that a share would be rounded to 100 %


@dataclass(frozen=True, slots=True)
class TrailStep:
    """One station on the way to a fault: where, and what happened there."""

    spot: Spot
    text: str  # "adds onto them"
    code: str = ""  # the user's statement there: "loss.backward()"

    @property
    def turn(self) -> str:
        """What it begins with where the loop has come round, else ""."""
        return next((each for each in (NEXT_ROUND, NEXT_CALL) if self.text.startswith(each)), "")

    def told(self, words: Mapping[str, str]) -> TrailStep:
        """Return it with other words for some, and the turn of the loop as it is."""
        mine = self.text.removeprefix(self.turn)
        return replace(self, text=self.turn + words.get(mine, mine))

    def to_json(self) -> dict[str, Any]:
        return {
            "filename": self.spot.path,
            "cell": self.spot.cell,
            "location": {"row": self.spot.line, "column": self.spot.column},
            "text": self.text,
            "code": self.code,
        }


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text between two places (1-based rows and columns) by `content`."""

    row: int
    column: int
    end_row: int
    end_column: int
    content: str

    def to_json(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "location": {"row": self.row, "column": self.column},
            "end_location": {"row": self.end_row, "column": self.end_column},
        }


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that remove the fault, proved to leave the file parsing and no new finding."""

    message: str
    edits: tuple[Edit, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "applicability": "safe",
            "message": self.message,
            "edits": [edit.to_json() for edit in self.edits],
        }


@dataclass(frozen=True, slots=True)
class Live:
    """What only a live run knows of a finding."""

    step: int | None = None  # the iteration it was first seen in, from 0
    ranks: tuple[int, ...] = ()  # empty: no ranks in this run
    parameters: tuple[str, ...] = ()
    count: int = 1
    # The norm of the stale part, divided by that of the whole: past 1 where they are opposed.
    share: float | None = None

    @property
    def leftover(self) -> str:
        """How large the stale part is, in words; empty if that is not known."""
        if self.share is None:
            return ""
        if self.share < _ALL_BUT_ALL:
            return f"{self.share:.0%} of the gradient is left over from earlier steps"
        times = f"{self.share:.1f} times"
        return f"what is left over from earlier steps is {times} as large as the whole gradient"


@dataclass(frozen=True, slots=True, repr=False)
class Finding:
    """A rule broken at a spot."""

    rule: Rule
    spot: Spot
    message: str
    advice: str
    owner: str = ""
    trail: tuple[TrailStep, ...] = ()
    fix: Fix | None = None
    url: str | None = None
    live: Live | None = None
    certain: bool = True  # False: only on some paths, shown with --may

    def __repr__(self) -> str:
        # Whoever prints a list of findings wants to know which, not every station of each trail.
        return f"<Finding {self.rule.code} {self.rule.name} at {self.spot}>"

    @property
    def key(self) -> tuple[str, Spot]:
        """Two findings with the same key are the same fault."""
        return (self.rule.code, self.spot)

    @property
    def often(self) -> str:
        """How many times it was seen, in words; empty if once."""
        if self.live is None or self.live.count < 2:
            return ""
        # What is proved by its coming again was there before it was first counted.
        is_late = self.rule.windowed or self.rule.kind is RuleKind.SUMMARY
        return f"{'at least ' if is_late else ''}{self.live.count:,} times"

    def to_json(self) -> dict[str, Any]:
        """Return the finding in the JSON shape of the docs, a superset of ruff's."""
        spot = self.spot
        shape: dict[str, Any] = {
            "code": self.rule.code,
            "name": self.rule.name,
            "severity": self.rule.severity.value,
            "message": self.message,
            "advice": self.advice,
            "filename": spot.path,
            "cell": spot.cell,
            "location": {"row": spot.line, "column": spot.column},
            "end_location": {
                "row": spot.end_line or spot.line,
                "column": spot.end_column or spot.column,
            },
            "trail": [step.to_json() for step in self.trail],
            "fix": self.fix.to_json() if self.fix else None,
            "url": self.url,
        }
        if self.live is not None:
            ranks = self.live.ranks
            shape |= {
                "step": self.live.step,
                "rank": ranks[0] if len(ranks) == 1 else list(ranks) or None,
                "owner": self.owner,
                "parameters": list(self.live.parameters),
                "count": self.live.count,
                "share": self.live.share,
            }
        return shape


def _no_code(spot: Spot) -> str:
    return ""


def explain(
    rule: Rule,
    event: Event,
    before: BucketState,
    code_at: Callable[[Spot], str] = _no_code,
) -> Finding:
    """Return the finding for `rule` broken by `event` in the state `before` it."""
    story = rule.tells(before, event)
    names = {"owner": event.owner or "the optimizer", **dict(story.names)}
    stations = [(spot, text) for spot, text in story.trail if spot is not None]
    trail = []
    previous: Spot | None = None
    for spot, text in stations:
        back = (
            previous is not None
            and spot.path == previous.path
            and (spot.line, spot.column) < (previous.line, previous.column)
        )
        # Going back up the file means that the loop has come round.
        words = f"{NEXT_ROUND}{text}" if back else text
        code = (event.text if spot == event.spot else "") or code_at(spot)
        trail.append(TrailStep(spot, words, code))
        previous = spot
    return Finding(
        rule=rule,
        spot=story.spot,
        message=(story.summary or rule.summary).format_map(names),
        advice=(story.advice or rule.advice).format_map(names),
        owner=dict(story.names).get("owner", event.owner),  # a leak is told at another's backward
        trail=tuple(trail),
    )


def in_rounds(finding: Finding, again: Sequence[bool]) -> Finding:
    """Return the finding with "next iteration" in its trail where `again` says so."""
    trail = []
    for station, is_again in zip(finding.trail, again, strict=True):
        words = station.text.removeprefix(NEXT_ROUND)
        trail.append(replace(station, text=f"{NEXT_ROUND}{words}" if is_again else words))
    return replace(finding, trail=tuple(trail))


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings by place, each fault once.

    The first of several findings with the same key stays: callers put the one
    with the better trail first.
    """
    unique: dict[tuple[str, Spot], Finding] = {}
    for finding in findings:
        unique.setdefault(finding.key, finding)
    return sorted(
        unique.values(),
        key=lambda each: (
            each.spot.path,
            each.spot.cell or 0,
            each.spot.line,
            each.spot.column,
            each.rule.code,
        ),
    )
