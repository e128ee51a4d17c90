"""Rounds that come by the same calls, and fill now these parameters, now those.

Where a batch chooses its experts, where layers are left out at random or a turn takes one head
of many, no two rounds need ever be equal. They are ridden all the same, once they have come by
the same calls often enough: what changes from round to round is not relied on, and is taken as
unknown where the ride ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.state import BucketState
from zerograd.runtime.memo import Node, Symbol
from zerograd.runtime.ride import Ring
from zerograd.runtime.rings import Passed, ring_of

SURE = 64  # kindred rounds in a row before the first ride
MOST_RINGS = 16
MOST_KINDS = 4096

_Key = tuple[int, ...]


class Kindred:
    """Notices when rounds are alike in all but the buckets that their backwards fill."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, int] = {}
        self._key: _Key = ()  # of the last round
        self._row = 0  # rounds in a row with this key
        self._always: list[frozenset[str]] = []  # what each backward has filled in all of these
        self._ever: list[frozenset[str]] = []  # and in any of them
        self._rings: dict[_Key, Ring] = {}

    def forget(self) -> None:
        """Begin anew: symbols and nodes are no longer the same."""
        self._kinds.clear()
        self._rings.clear()
        self.break_off()

    def break_off(self) -> None:
        """Take note of a round that is not to be compared with others."""
        self._key, self._row = (), 0

    def drop(self, ring: Ring) -> None:
        """Ride a ring no more: it is no habit after all."""
        self._rings = {key: each for key, each in self._rings.items() if each is not ring}
        self.break_off()

    def take(self, passed: Sequence[Passed]) -> Ring | None:
        """Take in a round; return the ring that those of its kind make, if there is one."""
        key = self._key_of(passed)
        if not key:
            self.break_off()
            return None
        filled = [
            frozenset(symbol.event.reach)
            for symbol, *_ in passed
            if symbol.event.kind is EventKind.BACKWARD
        ]
        if key == self._key:
            self._row += 1
            self._always = [a & b for a, b in zip(self._always, filled, strict=True)]
            self._ever = [a | b for a, b in zip(self._ever, filled, strict=True)]
        else:
            self._key, self._row = key, 1
            self._always = self._ever = filled
        varying = frozenset[str]().union(
            *(ever - always for ever, always in zip(self._ever, self._always, strict=True))
        )
        ring = self._rings.get(key)
        if ring is None:
            if self._row < SURE or not varying:
                return None
            ring = ring_of([passed])
            if len(ring.legs) < 2:
                return None
            if len(self._rings) >= MOST_RINGS:
                self._rings.clear()
            self._rings[key] = ring
        ring.varying |= varying
        return ring

    def begins(self, ring: Ring, symbol: Symbol, node: Node) -> bool:
        """May a ring be ridden from this event on, in this node? All but what varies must agree."""
        first = ring.symbols[0]
        return (
            self._kind_of(symbol) == self._kind_of(first)
            and set(symbol.event.reach) ^ set(first.event.reach) <= ring.varying
            and _states(node, ring.varying) == _states(ring.legs[0].node, ring.varying)
        )

    def _key_of(self, passed: Sequence[Passed]) -> _Key:
        """Return what kindred rounds have in common; nothing for a round that cannot be ridden so.

        Work by hand is no call, and a window of several backwards is to be counted.
        """
        if any(call is None or window is not None for _, _, call, window in passed):
            return ()
        return tuple(self._kind_of(symbol) for symbol, *_ in passed)

    def _kind_of(self, symbol: Symbol) -> int:
        if not symbol.kin:
            event, call = symbol.event, symbol.call
            if event.kind is EventKind.BACKWARD:
                event = replace(event, buckets=(), fills=frozenset())
            kind = (event, symbol.goes_on, call.key, call.depth, call.code, call.at)
            if len(self._kinds) >= MOST_KINDS:
                self.forget()
            symbol.kin = self._kinds.setdefault(kind, len(self._kinds) + 1)
        return symbol.kin


def _states(node: Node, varying: frozenset[str]) -> dict[str, BucketState]:
    """Return what each bucket holds there, but for those that vary."""
    return {name: state for name, state in node.snapshot[0][0] if name not in varying}
