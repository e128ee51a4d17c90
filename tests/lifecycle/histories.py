"""Histories for the tests: random ones, and loops written as text.

A loop is written one event a line, and the line is its spot:

    clear opt
    backward net
    step opt          when i % 4 == 3

A word with `=` is an option of the event; what follows `when` is Python over the
number `i` of the batch in its epoch, the epoch `e`, and the batch `n` of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.judge import judge
from zerograd.rules import ALL_RULES

KINDS = {kind.value: kind for kind in EventKind} | {
    "update": EventKind.SCALER_UPDATE,
    "skip": EventKind.STEP_SKIPPED,
}
BY_OWNER = {EventKind.CLEAR, EventKind.UNSCALE, EventKind.CLIP, EventKind.STEP}
BY_OWNER |= {EventKind.STEP_SKIPPED, EventKind.ASSIGN}


def read_event(text: str, line: int, holdings: dict[str, list[str]]) -> Event:
    """Return the event that one line of a loop describes."""
    verb, *words = text.split()
    kind = KINDS[verb]
    names = [word for word in words if "=" not in word]
    options: dict[str, Any] = {}
    for word in words:
        if "=" in word:
            key, value = word.split("=")
            options[key] = {"yes": True, "no": False}.get(value, value)
            if key == "fills":
                options[key] = frozenset(value.split(","))
    spot = Spot("train.py", line)
    if kind is EventKind.SCALER_UPDATE:
        return Event(kind, "", spot, scaler=names[0])
    if kind in BY_OWNER:
        (owner,) = names
        return Event(kind, owner, spot, tuple(holdings.get(owner, [owner])), text=text, **options)
    return Event(kind, names[0], spot, tuple(names), text=text, **options)


@dataclass(frozen=True)
class Loop:
    """One named shape of a training loop, and what zerograd says of it."""

    name: str
    body: str
    expect: tuple[tuple[str, int], ...] = ()
    holdings: dict[str, list[str]] = field(default_factory=lambda: {"opt": ["net"]})
    epochs: int = 1
    batches: int = 8

    def events(self) -> Iterator[Event]:
        """Yield what happens when the loop runs."""
        lines = [line.partition("#")[0].strip() for line in self.body.strip().splitlines()]
        for epoch in range(self.epochs):
            for batch in range(self.batches):
                count = epoch * self.batches + batch
                known = {"i": batch, "e": epoch, "n": count, "N": self.batches}
                for number, line in enumerate(lines, 1):
                    text, _, guard = line.partition(" when ")
                    if text.strip() and (not guard or eval(guard, {}, known)):
                        yield read_event(text.strip(), number, self.holdings)

    def findings(self) -> set[tuple[str, int]]:
        """Return the codes and lines of what the judge finds in it."""
        found = judge(self.events(), ALL_RULES, self.holdings)
        return {(finding.rule.code, finding.spot.line) for finding in found}


OWNERS = ("a", "b")
BUCKETS = ("x", "y", "z")

spots = st.builds(Spot, st.just("train.py"), st.integers(1, 9))
events = st.builds(
    Event,
    kind=st.sampled_from(EventKind),
    owner=st.sampled_from(OWNERS),
    spot=spots,
    buckets=st.lists(st.sampled_from(BUCKETS), min_size=1, unique=True).map(tuple),
    backward=st.sampled_from(["", "b1", "b2", "b3"]),
    fills=st.frozensets(st.sampled_from(OWNERS)),
    scaler=st.sampled_from(["", "s", "t"]),
    to_none=st.booleans(),
    inside=st.booleans(),
    leaf=st.booleans(),
    finite=st.booleans(),
)
histories = st.lists(events, max_size=40)
