"""Rounds of the training loop: when they repeat themselves, they become rings to ride on."""

from __future__ import annotations

from collections.abc import Sequence

from zerograd.lifecycle.windows import Window
from zerograd.runtime.memo import Node, Symbol
from zerograd.runtime.ride import BACKWARD, CLIP, Call, Leg, Ring

SURE = 16  # equal rounds before the first ride
MOST_LEGS = 4096
MOST_RINGS = 64

# One event of the round under way: its symbol, the node before it, how the hooks know
# it again (None: done by hand), and the window that it closed.
_Passed = tuple[Symbol, Node, Call | None, Window | None]


class Rounds:
    """Notices when rounds repeat themselves, and makes rings of them."""

    def __init__(self) -> None:
        self._round: list[_Passed] = []
        self._is_plain = True
        self._last: Ring | None = None
        self._equal = 0
        self._rings: dict[tuple[int, ...], Ring] = {}

    def forget(self) -> None:
        """Begin anew: symbols and nodes are no longer the same."""
        self._round.clear()
        self._is_plain = False  # until the round under way has ended
        self._last, self._equal = None, 0
        self._rings.clear()

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
        if ring is None or call is None or ring.symbols[0] is not symbol:
            return None
        return ring if ring.legs[0].node is node else None

    def resume(self) -> None:
        """Go on after a ride that ended where a round ends."""
        self._round.clear()
        self._is_plain = True

    def _end_round(self) -> Ring | None:
        passed, self._round = self._round, []
        is_plain, self._is_plain = self._is_plain, True
        if not passed:
            return None  # a ride has ended just here
        if not is_plain or passed[0][2] is None:
            self._last, self._equal = None, 0
            return None
        key = tuple([id(each[0]) for each in passed])
        ring = self._rings.get(key)
        if ring is None or ring.legs[0].node is not passed[0][1]:
            if len(self._rings) >= MOST_RINGS:
                self._rings.clear()
            ring = self._rings[key] = _ring_of(passed)
        self._equal = self._equal + 1 if ring is self._last else 1
        self._last = ring
        ring.is_sure = ring.is_sure or self._equal >= SURE
        return ring if ring.is_sure and len(ring.legs) > 1 else None


def _ring_of(passed: Sequence[_Passed]) -> Ring:
    legs: list[Leg] = []
    due: tuple[Symbol, ...] = ()
    has_places = any(call is not None and call.kind == BACKWARD for _, _, call, _ in passed)
    for symbol, node, call, window in passed:
        due = (*due, symbol)
        if call is not None:
            # A backward or a clip is known by its place alone. What its holder tells apart
            # does the same to the same gradients wherever it stands.
            looks = not has_places or call.kind in (BACKWARD, CLIP)
            leg = Leg(call.key, call.depth, call.code, call.at, call.kind, node, looks, due)
            leg.holder = call.holder
            leg.is_measured = call.kind in (BACKWARD, CLIP)
            leg.window = (symbol.event, window) if window is not None else None
            legs.append(leg)
            due = ()
    legs[0].symbols = (*due, *legs[0].symbols)
    for n, leg in enumerate(legs):
        leg.number, leg.next = n, legs[(n + 1) % len(legs)]
    legs[-1].is_last = True
    last = max(n for n, each in enumerate(passed) if each[2] is not None)
    end = passed[last + 1][1] if last + 1 < len(passed) else passed[0][1]
    return Ring(tuple(legs), tuple(symbol for symbol, _, _, _ in passed), end)
