"""The shape of a rule: data, and for most rules one small predicate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, Flag, auto

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.state import BucketState


class Severity(str, Enum):
    """How much a broken rule hurts. Notes are shown only when asked for."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Witness(Flag):
    """Who can see a rule broken."""

    STATIC = auto()
    RUNTIME = auto()


class RuleKind(Enum):
    """How a rule is judged."""

    TRANSITION = "transition"  # from the state before an event
    SYNTAX = "syntax"  # from the text alone
    SUMMARY = "summary"  # over a window or a run


class Over(Enum):
    """How many of an optimizer's buckets must break a rule before the optimizer does."""

    ANY = "any"
    ALL = "all"  # unused heads stay silent
    FILLED = "filled"  # all that hold anything: heads that are unused or frozen have no part in it


@dataclass(frozen=True, slots=True)
class Story:
    """How a fault came about: where to point, and the stations on the way there."""

    spot: Spot
    trail: tuple[tuple[Spot | None, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()  # more words for the rule's templates
    summary: str = ""  # what to say instead of the rule's own summary, where it came otherwise
    advice: str = ""  # and what to do about that


Breaks = Callable[[BucketState, Event], bool]
Tells = Callable[[BucketState, Event], Story]

# One finding a fault: of two broken rules in a row here, the earlier one speaks.
PRECEDENCE = (
    ("ZG103", "ZG101", "ZG201", "ZG402"),
    ("ZG501", "ZG102", "ZG401"),
)


STEPS = (EventKind.STEP, EventKind.STEP_SKIPPED)


def yields_to(code: str, other: str) -> bool:
    """Is `code` the lesser name of the fault that `other` names?"""
    return any(
        code in order and other in order and order.index(other) < order.index(code)
        for order in PRECEDENCE
    )


def _points_at_event(before: BucketState, event: Event) -> Story:
    return Story(event.spot)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the catalogue.

    `summary` and `advice` are templates; they are filled with the user's own
    names: `{owner}` always, and what else the rule's finding knows.
    """

    code: str
    name: str
    summary: str
    advice: str
    severity: Severity
    seen_by: Witness
    kind: RuleKind = RuleKind.TRANSITION
    on: frozenset[EventKind] = frozenset()  # TRANSITION: the events at which it is judged
    breaks: Breaks | None = None
    tells: Tells = _points_at_event
    over: Over = Over.ANY
    after_step: bool = False  # judged only where the owner has stepped before in this loop
    once_seen: bool = False  # judged only where something has filled or cleared the bucket
    filled: bool = False  # judged only where the bucket holds something
    every_path: bool = False  # a condition that may change in each iteration excuses it
    windowed: bool = False  # one history proves it by two windows in a row, not by one event

    def broken_by(self, before: BucketState, event: Event) -> bool:
        """Is the rule broken by `event` in the state `before` it?"""
        if self.breaks is None or event.kind not in self.on or before.unknown:
            return False
        if self.once_seen and not before.seen:
            return False
        return self.breaks(before, event)

    def is_judged_at(self, kind: EventKind) -> bool:
        """Is it judged at events of this kind, as they come?"""
        return self.kind is RuleKind.TRANSITION and kind in self.on
