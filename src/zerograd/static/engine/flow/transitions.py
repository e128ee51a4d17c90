"""The states of one root, numbered, and what becomes of each: computed once, looked up after."""

from __future__ import annotations

from collections.abc import Collection

from zerograd.lifecycle.events import Event, EventKind
from zerograd.lifecycle.machine import advance
from zerograd.lifecycle.state import UNKNOWN, BucketState
from zerograd.static.engine.flow.points import Pair
from zerograd.static.engine.identity.ir import Doubt

_SETTLING = (EventKind.CLEAR, EventKind.BACKWARD, EventKind.ASSIGN)


class Transitions:
    """Every state that was met, by number, and the state that follows it."""

    def __init__(self) -> None:
        self.states: list[tuple[BucketState, Doubt]] = []
        self._numbers: dict[tuple[BucketState, Doubt], int] = {}
        # (id of an event, bucket) -> state before -> state after
        self._moves: dict[tuple[int, str], dict[int, int]] = {}
        self._after: dict[tuple[int, str, frozenset[Pair]], frozenset[Pair]] = {}
        self._others: dict[tuple[object, int], int] = {}  # what else became of a state
        self._events: list[Event] = []  # keeps the events alive, so that their ids stay theirs

    def number(self, state: BucketState, doubt: Doubt) -> int:
        key = (state, doubt)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.states)
            self.states.append(key)
        return found

    def moves_at(self, event: Event, bucket: str) -> dict[int, int]:
        """Return what is known of an event's moves; `move` finds those that are missing."""
        key = (id(event), bucket)
        moves = self._moves.get(key)
        if moves is None:
            self._events.append(event)
            moves = self._moves[key] = {}
        return moves

    def after(self, event: Event, bucket: str, pairs: frozenset[Pair]) -> frozenset[Pair]:
        """Return the pairs with each state as an event leaves it."""
        key = (id(event), bucket, pairs)
        found = self._after.get(key)
        if found is None:
            moves = self.moves_at(event, bucket)
            found = self._after[key] = frozenset(
                [
                    (moves[state] if state in moves else self.move(state, event, bucket), literals)
                    for state, literals in pairs
                ]
            )
        return found

    def move(self, number: int, event: Event, bucket: str) -> int:
        """Return the state after an event."""
        state, before = self.states[number]
        doubt = before
        if bucket in event.reach and event.kind in _SETTLING:
            doubt = Doubt.NONE
        after = advance(state, event, bucket)
        if event.kind is EventKind.TOUCH and bucket in event.reach and after.absent:
            after = after._replace(absent=False)  # who gets past a use had a gradient
        same = after is state and doubt is before
        found = self.moves_at(event, bucket)[number] = number if same else self.number(after, doubt)
        return found

    def forgotten(self, number: int) -> int:
        """Return the state of which nothing is known but who has stepped, and that a loss was."""
        state = self.states[number][0]
        after = UNKNOWN._replace(stepped=state.stepped, earlier=state.earlier, seen=state.seen)
        return self.number(after, Doubt.NONE)

    def doubted(self, number: int, doubt: Doubt) -> int:
        """Return the state, and that it is no surer than that."""
        known = self._others.get((doubt, number))
        if known is None:
            state, before = self.states[number]
            known = number if before >= doubt else self.number(state, doubt)
            self._others[doubt, number] = known
        return known

    def filled(self, number: int) -> int:
        """Return the state with a gradient that is there."""
        known = self._others.get(("filled", number))
        if known is None:
            state, doubt = self.states[number]
            known = number
            if state.absent:
                known = self.number(state._replace(absent=False), doubt)
            self._others["filled", number] = known
        return known

    def anew(self, number: int, steppers: frozenset[str]) -> int:
        """Return the state in which none of these has stepped yet."""
        known = self._others.get((steppers, number))
        if known is None:
            state, doubt = self.states[number]
            known = number
            before = state.stepped & steppers
            if before:
                # who stepped before matters where another's loss has left something since
                left = any((each.fills | each.used_by) - before for each in state.contributions)
                earlier = state.earlier | before if left else state.earlier
                after = state._replace(stepped=state.stepped - before, earlier=earlier)
                known = self.number(after, doubt)
            self._others[steppers, number] = known
        return known

    def is_spent(self, number: int, holders: Collection[str], or_empty: bool) -> bool:
        """Has a step of who holds it used all that is there? What nobody holds, anybody uses."""
        contributions = self.states[number][0].contributions
        return (or_empty or bool(contributions)) and all(
            not each.used_by.isdisjoint(holders) if holders else each.used_by
            for each in contributions
        )
