"""Windows: the micro-batches of one update, counted for the rules that judge them.

A window ends at its owner's step. The rules about windows compare a few of them
in a row, because one odd window proves nothing: a clear that drops one batch
may be a guard against a bad one.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from zerograd.lifecycle.events import Event, EventKind, Spot

REMEMBERED = 4  # windows kept per owner


@dataclass(frozen=True, slots=True)
class Window:
    """What happened to one owner between two of its steps."""

    step: Spot
    used: tuple[tuple[Spot, int], ...]  # backwards that the step used, by spot
    lost: tuple[tuple[Spot, int], ...]  # backwards that a clear threw away unused, by spot
    lost_at: Spot | None  # the clear that did so last
    lost_finite: bool
    averaged: bool | None  # was any loss divided or weighted? None: not known
    synchronised: int  # backwards that all-reduced over ranks

    @property
    def empty(self) -> bool:
        return not self.used

    @property
    def size(self) -> int:
        """The most backwards from one spot that the step used."""
        return max((count for _, count in self.used), default=0)

    def lost_of_its_own(self) -> int:
        """How many backwards from a spot that this step used were thrown away before it."""
        used = dict(self.used)
        return max((count for spot, count in self.lost if spot in used), default=0)


@dataclass(slots=True)
class _Open:
    """The window of one owner that has not been stepped yet."""

    waiting: Counter[Spot] = field(default_factory=Counter)
    fills: dict[Spot, frozenset[str]] = field(default_factory=dict)
    shared: set[Spot] = field(default_factory=set)  # another optimizer stepped on that loss
    lost: Counter[Spot] = field(default_factory=Counter)
    lost_at: Spot | None = None
    lost_finite: bool = True
    averaged: bool | None = None
    synchronised: int = 0

    def fill(self, event: Event) -> None:
        self.waiting[event.spot] += 1
        self.fills[event.spot] = event.fills
        self.shared.discard(event.spot)
        self.synchronised += event.synchronised
        if event.averaged is not None:
            self.averaged = bool(self.averaged) or event.averaged

    def clear(self, event: Event) -> None:
        dropped = {spot: n for spot, n in self.waiting.items() if spot not in self.shared}
        if dropped and not event.inside:
            self.lost.update(dropped)
            self.lost_at = event.spot
            self.lost_finite &= event.finite
        self.waiting.clear()
        self.shared.clear()

    def share(self, owner: str) -> None:
        self.shared.update(spot for spot in self.waiting if owner in self.fills[spot])


class WindowLog:
    """The open window and the last few closed ones, for each owner."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._closed: dict[str, deque[Window]] = {}

    def feed(self, event: Event, owners: tuple[str, ...]) -> Window | None:
        """Count `event` for the owners it concerns; return the window that it closes."""
        if event.kind in (EventKind.STEP, EventKind.STEP_SKIPPED):
            for owner, window in self._open.items():
                if owner != event.owner:
                    window.share(event.owner)
            return self._close(event)
        for owner in owners:
            window = self._open.setdefault(owner, _Open())
            if event.kind is EventKind.BACKWARD:
                window.fill(event)
            elif event.kind is EventKind.CLEAR:
                window.clear(event)
        return None

    def last(self, owner: str) -> tuple[Window, ...]:
        """Return the last closed windows of `owner`, oldest first."""
        return tuple(self._closed.get(owner, ()))

    def _close(self, event: Event) -> Window:
        window = self._open.pop(event.owner, None) or _Open()
        closed = Window(
            step=event.spot,
            used=tuple(window.waiting.items()),
            lost=tuple(window.lost.items()),
            lost_at=window.lost_at,
            lost_finite=window.lost_finite,
            averaged=window.averaged,
            synchronised=window.synchronised,
        )
        self._closed.setdefault(event.owner, deque(maxlen=REMEMBERED)).append(closed)
        return closed
