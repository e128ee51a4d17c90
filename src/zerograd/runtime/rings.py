"""A ring, made of the rounds that are to be ridden: what is due, call by call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

from zerograd.lifecycle.window import Window
from zerograd.runtime.memo import Node, Symbol
from zerograd.runtime.ride import BACKWARD, CLIP, Call, Leg, Ring

# One event of a round: its symbol, the node before it, how the hooks know
# it again (None: done by hand), and the window that it closed.
Passed = tuple[Symbol, Node, Call | None, Window | None]


def ring_of(rounds: Sequence[Sequence[Passed]]) -> Ring:
    """Return the ring that these rounds make together, one after the other."""
    passed = list(chain.from_iterable(rounds))
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
    firsts = tuple(accumulate((_calls_in(each) for each in rounds[:-1]), initial=0))
    return Ring(tuple(legs), tuple(symbol for symbol, _, _, _ in passed), end, firsts)


def _calls_in(passed: Sequence[Passed]) -> int:
    return sum(call is not None for _, _, call, _ in passed)
