"""Clears in each round of a loop whose step stands behind it, so that the last round is left."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.state import BucketState, Phase
from zerograd.static.engine.flow.steppers import Steppers, loops_around
from zerograd.static.engine.identity.conditions import RAISED
from zerograd.static.engine.identity.ir import Happening, Loop
from zerograd.static.engine.identity.shown import name_of
from zerograd.static.engine.identity.taken import takes

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

_COUNTED = (ast.Compare, ast.Constant)  # of a `while` that goes round a number of times


class InnerClears(Steppers):
    """The clears that no step of their own loop answers."""

    def __init__(
        self, program: Program, buckets: Buckets, flow: Flow, atoms: dict[str, int]
    ) -> None:
        super().__init__(buckets, flow, atoms)
        self._program = program
        caught = [n * 2 + 1 for n, key in self._keys.items() if key.startswith(RAISED)]
        self._raised = frozenset((*caught, *(-each - 1 for each in caught)))  # now, or one back
        self._names = {
            each.optimizer.key: name_of(each)
            for each in reversed(buckets.happenings)
            if each.optimizer is not None and each.name
        }

    def _nested(self, node: Happening, loop: Loop) -> Iterable[tuple[str, BucketState, bool]]:
        """The loop fills and clears in each round, and only the loop around it steps."""
        if loop.pseudo or loop.once:
            return
        varies = any(self._program.varies(loop, key) for key in node.inner | node.behind)
        if isinstance(loop.node, ast.While) and not isinstance(loop.node.test, _COUNTED):
            varies = True  # it may be trying again until it is well: `while not done`
        text = loop.text
        if not text:
            return
        # Each round's gradients may be kept elsewhere.
        taken = takes(text)
        assert node.event is not None
        for owner, holding in self._buckets.holdings.items():
            held = [b for b in node.event.buckets if b in holding]
            where = self._steps_around_only(owner, loop) if held else None
            if where is None or not self._is_settled(where, loop):
                continue
            held = [b for b in held if self._is_ever_filled(node, b)]  # no unused head
            dropped = [
                self._dropped_each_round(node, bucket, owner, loop, where) for bucket in held
            ]
            if dropped and all(lost for lost, _ in dropped):
                certain = not varies and not taken and all(all_ for _, all_ in dropped)
                yield self._names.get(owner, owner), dropped[0][0][0], certain
                return

    def _is_settled(self, where: frozenset[int], loop: Loop) -> bool:
        """Is this the same in all rounds of the loop, and of those around it?"""
        return not any(
            self._program.varies(each, self._keys[literal // 2])
            for literal in where
            for each in loops_around(loop)
        )

    def _is_ever_filled(self, node: Happening, bucket: str) -> bool:
        reached = self._flow.reached[id(node)].get(bucket, ())
        return any(self._flow.states[number][0].contributions for number, _ in reached)

    def _dropped_each_round(
        self, node: Happening, bucket: str, owner: str, loop: Loop, where: frozenset[int]
    ) -> tuple[list[BucketState], bool]:
        """Return the states in which the clear throws away what the round before it filled.

        And whether it throws away all that there is then, while the step is there for nothing
        else than the last such round's loss. None, if it is not there for that.
        """
        inside = {
            each.event.backward or str(each.event.spot)
            for each in self._buckets.happenings
            if each.kind is EventKind.BACKWARD
            and each.event is not None
            and loop in loops_around(each.loop)
        }
        used = self._stepped_on(owner)
        if not used & inside:
            return [], False
        states = [
            self._flow.states[n][0]
            for n, literals in self._flow.reached[id(node)].get(bucket, ())
            if where <= literals and literals.isdisjoint(self._raised)  # who fails tries again
        ]
        fresh = [
            state for state in states if not state.unknown and state.phase(owner) is Phase.FRESH
        ]
        unused = [
            [not each.used_by and each.backward in inside for each in state.contributions]
            for state in fresh
        ]
        lost = [state for state, each in zip(fresh, unused, strict=True) if any(each)]
        return lost, used <= inside and all(map(all, unused))
