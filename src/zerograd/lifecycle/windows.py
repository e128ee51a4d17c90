"""Windows: the micro-batches of one update, counted for the rules that judge them.

A window ends at its owner's step. One odd window proves nothing: a clear that
drops a batch may be a guard against a bad one, and windows may vary in size on
purpose. So every rule here waits until windows agree with each other.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.state import Drop
from zerograd.lifecycle.tails import Tails
from zerograd.lifecycle.window import SURE_OF_NO_GUARD, Window, most

REMEMBERED = 16  # windows kept per owner
MOST_COUNTED = 256  # micro-batches of one window that are counted one by one


@dataclass(frozen=True, slots=True)
class WindowFault:
    """A rule that the windows of one owner break, and where."""

    code: str
    spot: Spot
    drop: Drop | None = None


def window_faults(windows: Sequence[Window]) -> list[WindowFault]:
    """Return what the last windows of one owner break, by two of them that agree.

    >>> spot, clear = Spot("a.py", 3), Spot("a.py", 1)
    >>> drop = Drop(spot, clear)
    >>> counts = {"used": ((spot, 1),), "lost": ((spot, 3),), "clears": ((spot, 3),)}
    >>> window = Window(Spot("a.py", 5), **counts, drop=drop)
    >>> [(fault.code, fault.spot.line) for fault in window_faults([window, window])]
    [('ZG501', 1)]
    """
    if len(windows) < 2:
        return []
    faults = _on_nothing(windows)
    if windows[-1].bare:
        return faults
    # A step that finds nothing, between those of the windows, is a fault of its own.
    filled = [each for each in reversed(windows[:-1]) if not each.bare]
    before = filled[0] if filled else windows[-2]
    last = windows[-1]
    # A guard that throws some batches away also keeps some windows whole; a loop that
    # clears at every micro-batch never does, but for a shorter first one. A counter is no
    # such guard.
    always = last.counted or not any(each.is_whole for each in windows)
    # And it throws away each time as much as the step is left with, or, where a counter decides,
    # more: one clear that drops a tail, as many loops have before each epoch, drops less.
    agrees = last.wasted == before.wasted or _comes_after_a_tail(last, filled)
    always = always and not last.may_be_guarded
    is_tail = not last.is_even and not (last.counted and last.wasted >= last.size)
    if last.drop is not None and last.wasted and agrees and not is_tail and always:
        faults.append(WindowFault("ZG501", last.drop.clear, last.drop))
    # Batches that a guard keeps from their step, one after the other, are no window to average.
    meant = bool(last.counted) or not last.may_be_guarded
    undivided = last.averaged is False and before.averaged is False
    if meant and undivided and min(last.size, before.size) >= 2:
        faults.append(WindowFault("ZG503", last.step))
    if meant and min(most(last.synchronised), most(before.synchronised)) >= 2:
        spot = max(last.synchronised, key=lambda each: each[1])[0]
        faults.append(WindowFault("ZG505", spot))
    if last.clipped is not None and last.clipped == before.clipped and last.used and before.used:
        faults.append(WindowFault("ZG304", last.clipped))
    return faults


def _comes_after_a_tail(last: Window, before: Sequence[Window]) -> bool:
    """Does it lose as much as the last but one, with a shorter one in between?

    An epoch ends with a short window where its micro-batches do not divide by K.
    """
    return len(before) > 1 and 0 < before[0].wasted < last.wasted == before[1].wasted


def _on_nothing(windows: Sequence[Window]) -> list[WindowFault]:
    """Return what it breaks if the same step has found nothing twice, one time after the other."""
    last = windows[-1]
    before = next((each for each in reversed(windows[:-1]) if each.step == last.step), None)
    if before is None or not before.bare or not last.bare:
        return []
    if last.lost_all or before.lost_all:
        drop = last.drop or before.drop
        # It may dislike some in a row; if all, nothing is trained. A step that is guarded, and
        # comes to nothing, is no guard's work: what is thrown away is for the clear to choose.
        if drop is not None and drop.chosen and last.may_be_guarded:
            return []
        return [WindowFault("ZG102", last.step, drop)]
    if before.drop is not None or last.drop is not None:
        return []
    if last.taken is not None:
        return [WindowFault("ZG102", last.step, last.taken)]
    if last.within is not None and last.within.finite and before.within is not None:
        return [WindowFault("ZG102", last.step, last.within)]
    return [WindowFault("ZG401", last.step)]


@dataclass(slots=True)
class _Open:
    """The window of one owner that has not been stepped yet."""

    waiting: Counter[Spot] = field(default_factory=Counter)
    filled: set[str] = field(default_factory=set)  # buckets that hold some of what waits
    shared: set[Spot] = field(default_factory=set)  # another optimizer stepped on that loss
    lost: Counter[Spot] = field(default_factory=Counter)
    drop: Drop | None = None
    clears: Counter[Spot] = field(default_factory=Counter)
    for_others: set[Spot] = field(default_factory=set)  # losses that filled other optimizers too
    within: Drop | None = None
    averaged: bool | None = None
    synchronised: Counter[Spot] = field(default_factory=Counter)
    taken: Drop | None = None
    clip: Spot | None = None  # since the last backward
    clipped: Spot | None = None  # before the first backward, and no other clip since

    def fill(self, event: Event, owner: str, held: Iterable[str]) -> None:
        if not self.waiting:
            self.clipped = self.clip
        elif self.clip not in (None, self.clipped):
            self.clipped = None
        self.clip = None
        _count(self.waiting, event.spot)
        self.filled.update(held)
        self.shared.discard(event.spot)
        if event.fills - {owner}:
            self.for_others.add(event.spot)
        if event.synchronised:
            _count(self.synchronised, event.spot)
        if event.averaged is not None:
            self.averaged = bool(self.averaged) or event.averaged

    def assign(self, event: Event, held: Iterable[str]) -> None:
        # What is assigned may be made of what was cleared before (PCGrad): nothing is lost.
        self.clipped = self.clip if not self.waiting else None
        self.waiting = Counter({event.spot: 1})
        self.filled.update(held)
        self.lost.clear()
        self.drop = self.within = self.clip = None
        self.clears.clear()

    def clear(self, event: Event) -> None:
        self.filled.difference_update(event.reach)
        if self.filled:
            return  # some buckets still hold it
        if self.waiting:
            self.clip = self.clipped = None  # what was clipped is gone
        dropped = {spot: n for spot, n in self.waiting.items() if spot not in self.shared}
        if self.waiting and not dropped and not event.inside and event.finite:
            self.taken = Drop(next(iter(self.waiting)), event.spot, shared=True)
        if dropped and not event.inside:
            finite = event.finite and (self.drop is None or self.drop.finite)
            self.lost.update(dropped)
            self.drop = Drop(next(iter(dropped)), event.spot, finite, chosen=event.chosen)
            for spot in dropped:
                _count(self.clears, spot)
        elif dropped:
            self.within = Drop(next(iter(dropped)), event.spot, event.finite)
        self.waiting.clear()
        self.shared.clear()
        self.synchronised.clear()  # the next backward begins anew

    def share(self, used: Iterable[Spot]) -> None:
        self.shared.update(spot for spot in used if spot in self.waiting)

    def frozen(self) -> Hashable:
        return (
            tuple(self.waiting.items()),
            frozenset(self.filled),
            frozenset(self.shared),
            tuple(self.lost.items()),
            self.drop,
            tuple(self.clears.items()),
            frozenset(self.for_others),
            self.within,
            self.averaged,
            tuple(self.synchronised.items()),
            self.taken,
            self.clip,
            self.clipped,
        )

    @classmethod
    def thawed(cls, frozen: Any) -> _Open:
        waiting, filled, shared, lost, drop, clears, others, *rest = frozen
        within, averaged, synchronised, *rest = rest
        return cls(
            Counter(dict(waiting)),
            set(filled),
            set(shared),
            Counter(dict(lost)),
            drop,
            Counter(dict(clears)),
            set(others),
            within,
            averaged,
            Counter(dict(synchronised)),
            *rest,
        )

    def is_chosen(self, step: Event) -> bool:
        return step.chosen or (self.drop is not None and self.drop.chosen)

    def close(self, step: Event, bare: bool, before: Window | None) -> Window:
        return Window(
            step=step.spot,
            bare=bare,
            used=tuple(self.waiting.items()),
            lost=tuple(self.lost.items()),
            drop=self.drop,
            taken=self.taken,
            clears=tuple(self.clears.items()),
            shared=frozenset(self.for_others.intersection(self.lost)),
            within=self.within,
            averaged=self.averaged,
            synchronised=tuple(self.synchronised.items()),
            is_first=before is None,
            counted=step.counted,
            chosen=self.is_chosen(step),
            spoiled_before=_in_a_row(before) if self.is_chosen(step) else 0,
            clipped=self.clipped if self.clip is None else None,
        )


def _in_a_row(before: Window | None) -> int:
    """Return how many windows up to this one were chosen, and none of them whole."""
    if before is None or not before.chosen or before.is_whole:
        return 0
    return min(before.spoiled_before + 1, SURE_OF_NO_GUARD)


def _count(counts: Counter[Spot], spot: Spot) -> None:
    counts[spot] = min(counts[spot] + 1, MOST_COUNTED)


class WindowLog:
    """The open window and the last closed ones of each owner."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._closed: dict[str, deque[Window]] = {}
        self._tails: dict[str, Tails] = {}

    def feed(self, event: Event, held: Mapping[str, Iterable[str]]) -> None:
        """Count `event`, which is no step, for the owners of the buckets that it reaches."""
        if event.kind is EventKind.BACKWARD:
            for opened in self._open.values():
                opened.taken = None  # this is the loss that the next step is about
        for owner, buckets in held.items():
            if event.kind is EventKind.BACKWARD:
                self._open.setdefault(owner, _Open()).fill(event, owner, buckets)
            elif event.kind is EventKind.ASSIGN:
                self._open.setdefault(owner, _Open()).assign(event, buckets)
            elif event.kind is EventKind.CLEAR and owner in self._open:
                self._open[owner].clear(event)
            elif event.kind is EventKind.CLIP:
                self._open.setdefault(owner, _Open()).clip = event.spot

    def step(self, event: Event, bare: bool) -> tuple[Window, list[WindowFault]]:
        """Close the window of the owner that steps; return it, and what the last ones break."""
        owner = event.owner
        closed = self._closed.setdefault(owner, deque(maxlen=REMEMBERED))
        last = closed[-1] if closed else None
        window = self._open.pop(owner, _Open()).close(event, bare, last)
        if window.is_repeated:
            return window, []
        for other in self._open.values():
            other.share(spot for spot, _ in window.used)
        closed.append(window)
        faults = window_faults(tuple(closed))
        _forget(closed)
        return window, faults

    def has_tail(self, owner: str, window: Window) -> bool:
        """Take `window` into the count of whole epochs; does it show a tail that was lost?"""
        if window.is_repeated:
            return False
        return self._tails.setdefault(owner, Tails()).feed(window.size, window.wasted)

    def forget(self, owner: str) -> None:
        """Drop an owner that is gone."""
        self._open.pop(owner, None)
        self._closed.pop(owner, None)
        self._tails.pop(owner, None)

    def snapshot(self) -> Hashable:
        """Return all that `feed` and `step` depend on; the count of epochs is not in it."""
        return (
            tuple((owner, window.frozen()) for owner, window in sorted(self._open.items())),
            tuple((owner, tuple(closed)) for owner, closed in sorted(self._closed.items())),
        )

    def restore(self, snapshot: Any) -> None:
        """Go back to what `snapshot` returned."""
        opened, closed = snapshot
        self._open = {owner: _Open.thawed(window) for owner, window in opened}
        self._closed = {owner: deque(windows, REMEMBERED) for owner, windows in closed}


def _forget(closed: deque[Window]) -> None:
    """Drop the windows that no rule can look at any more, so that equal loops look equal.

    There matter those since the latest whole one, until that is too old, and the latest
    of each step.
    """
    windows = list(closed)
    whole = [n for n, each in enumerate(windows) if each.is_whole]
    start = min(whole[-1] if whole else len(windows), len(windows) - 2)
    latest = set({window.step: n for n, window in enumerate(windows)}.values())
    closed.clear()
    closed.extend(each for n, each in enumerate(windows) if n >= start or n in latest)
