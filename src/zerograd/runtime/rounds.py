"""Rounds of the training loop: when they repeat themselves, they become rings to ride on.

A critic that learns five times for each time of the generator, an actor that waits for every
second turn: there it is some rounds together that come again, and these are the ring.
"""

from __future__ import annotations

from collections import deque
from itertools import chain, islice

from zerograd.lifecycle.window import Window
from zerograd.runtime.kindred import Kindred
from zerograd.runtime.memo import Node, Symbol
from zerograd.runtime.ride import Call, Ring
from zerograd.runtime.rings import Passed, ring_of

SURE = 16  # equal rounds before the first ride
MOST_LEGS = 4096
MOST_RINGS = 64
MOST_TOGETHER = 16  # rounds that come again as one
TOO_SHORT = 3  # rides in a row that ended within two laps: it is no habit after all

# How a round is known again: by the node before it, and its symbols. Who keeps one keeps these.
_Key = tuple[int, ...]
_Round = tuple[_Key, list[Passed]]


class Rounds:
    """Notices when rounds repeat themselves, and makes rings of them."""

    def __init__(self) -> None:
        self._round: list[Passed] = []
        self._is_plain = True
        self._past: deque[_Round] = deque(maxlen=MOST_TOGETHER)  # the last one first
        self._runs: list[int] = []  # rounds in a row equal to the one so many before, from 1 on
        self._rings: dict[tuple[_Key, ...], Ring] = {}
        self._lengths: tuple[int, ...] = ()  # of these, in rounds
        self._unhurried = 0  # rounds that shall pass before the next ride
        self._kindred = Kindred()

    def forget(self) -> None:
        """Begin anew: symbols and nodes are no longer the same."""
        self._round.clear()
        self._is_plain = False  # until the round under way has ended
        self._break_off()
        self._rings.clear()
        self._lengths = ()
        self._kindred.forget()

    def spoil(self) -> None:
        """Say that the round under way holds something that cannot be ticked off."""
        self._is_plain = False

    def passed(
        self,
        symbol: Symbol,
        node: Node,
        call: Call | None,
        window: Window | None,
        new_round: bool,
    ) -> Ring | None:
        """Take in one event; return a ring if it is the first of a round that can be ridden."""
        ring = self._end_round() if new_round else None
        if len(self._round) < MOST_LEGS:
            self._round.append((symbol, node, call, window))
        else:
            self._is_plain = False
        if ring is None or call is None:
            return None
        if ring.varying:
            return ring if self._kindred.begins(ring, symbol, node) else None
        if ring.symbols[0] is not symbol:
            return None
        return ring if ring.legs[0].node is node else None

    def resume(self, ring: Ring) -> None:
        """Go on after a ride that ended where its ring does: once round it with full care."""
        self._round.clear()
        self._is_plain = True
        self._unhurried = ring.together - 1
        ring.short = 0

    def leave(self, ring: Ring, laps: int) -> None:
        """Go on after a ride that ended in the midst of its ring, after so many laps."""
        self.spoil()
        ring.short = 0 if laps > 1 else ring.short + 1
        if ring.short >= TOO_SHORT:
            self._kindred.drop(ring)
            self._rings = {key: each for key, each in self._rings.items() if each is not ring}

    def _break_off(self) -> None:
        self._past.clear()
        self._runs = []
        self._unhurried = 0
        self._kindred.break_off()

    def _end_round(self) -> Ring | None:
        passed, self._round = self._round, []
        is_plain, self._is_plain = self._is_plain, True
        if not passed:
            return None  # a ride has ended just here
        if not is_plain or passed[0][2] is None:
            self._break_off()
            return None
        key = (id(passed[0][1]), *[id(each[0]) for each in passed])
        past = self._past
        self._runs = [
            run + 1 if key == before else 0
            for run, (before, _) in zip(chain(self._runs, (0,)), past, strict=False)
        ]
        past.appendleft((key, passed))
        if self._unhurried:
            self._unhurried -= 1
            return None
        return self._known() or self._new() or self._kindred.take(passed)

    def _known(self) -> Ring | None:
        """Return the ring that the last rounds make, if it has been one before."""
        for together in self._lengths:
            ring = self._rings.get(tuple(key for key, _ in islice(self._past, together)))
            if ring is not None:
                return ring
        return None

    def _new(self) -> Ring | None:
        """Return a ring that the last rounds make now, having come often enough."""
        for together, run in enumerate(self._runs, start=1):
            if run >= max(SURE - 1, together):
                break
        else:
            return None
        rounds = tuple(islice(self._past, together))
        ring = ring_of([passed for _, passed in reversed(rounds)])
        if len(ring.legs) < 2 or len(ring.symbols) > MOST_LEGS:
            return None
        if len(self._rings) >= MOST_RINGS:
            self._rings.clear()
        self._rings[tuple(key for key, _ in rounds)] = ring
        self._lengths = tuple(sorted({*self._lengths, together}))
        return ring
