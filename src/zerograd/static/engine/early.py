"""ZG501 in source code: a clear inside the window that a later step ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.state import BucketState, Contribution, Phase
from zerograd.static.engine.conditions import SYNC
from zerograd.static.engine.ir import Happening, Loop

if TYPE_CHECKING:
    from zerograd.static.engine.buckets import Buckets
    from zerograd.static.engine.flow import Flow, Pair
    from zerograd.static.engine.program import Program

Early = tuple[str, BucketState]  # the owner, and a state that the clear throws away


class EarlyClears:
    """Judges the clears of one root.

    A window is a counter around the step, or a loop of its own inside the loop of the step.
    """

    def __init__(
        self, program: Program, buckets: Buckets, flow: Flow, atoms: dict[str, int]
    ) -> None:
        self._program = program
        self._buckets = buckets
        self._flow = flow
        self._atoms = atoms
        self._uses: dict[str, set[str]] = {}

    def at(self, node: Happening) -> Early | None:
        """Return whose window this clear cuts short, if it does."""
        if node.event is None or node.inside or node.loop is None:
            return None
        return self._by_counter(node, node.loop) or self._by_nesting(node, node.loop)

    def _by_counter(self, node: Happening, loop: Loop) -> Early | None:
        """In an iteration after one that did not step, the clear drops what was filled."""
        assert node.event is not None
        # Accelerate's own boundary stands around steps and clears alike.
        own = node.inner | node.behind
        varying = {key for key in own if key != SYNC and self._program.varies(loop, key)}
        for owner, guard in self._window_guards():
            if varying - {guard}:
                continue  # a condition of its own, which may be the window's start
            number = self._atoms[guard]
            held = self._held(node, owner)
            for truth in (0, 1):
                before = -(number * 2 + truth) - 1
                if not held or truth == self._stepping_side(owner, guard):
                    continue
                # Under the same guard a step before it in this round excuses it.
                strict = guard in node.guards | node.behind
                # A part that no loss fills, an unused head, is thrown away with the rest.
                filled = [b for b in held if self._is_filled(node, b, before)]
                if filled and all(self._drops(node, b, owner, before, strict) for b in filled):
                    return owner, self._example(self._judged(node, filled[0], before))
        return None

    def _by_nesting(self, node: Happening, loop: Loop) -> Early | None:
        """The loop fills and clears in each round, and only the loop around it steps."""
        assert node.event is not None
        if loop.pseudo or loop.once or any(self._program.varies(loop, key) for key in node.guards):
            return None
        for owner in self._buckets.holdings:
            held = self._held(node, owner)
            if not held or not self._steps_around_only(owner, loop):
                continue
            if all(self._drops_each_round(node, bucket, owner, loop) for bucket in held):
                return owner, self._example(self._pairs(node, held[0]))
        return None

    def _held(self, node: Happening, owner: str) -> list[str]:
        assert node.event is not None
        return [b for b in node.event.buckets if b in self._buckets.holdings[owner]]

    def _steps_of(self, owner: str) -> list[Happening]:
        return [
            each
            for each in self._buckets.happenings
            if each.kind is EventKind.STEP and each.event is not None and each.event.owner == owner
        ]

    def _steps_around_only(self, owner: str, loop: Loop) -> bool:
        """Do all steps of the owner stand in loops around this one?"""
        around = set()
        outer = loop.parent
        while outer is not None:
            around.add(id(outer))
            outer = outer.parent
        steps = self._steps_of(owner)
        return bool(steps) and all(
            each.loop is not None and id(each.loop) in around and not each.loop.pseudo
            for each in steps
        )

    def _drops_each_round(self, node: Happening, bucket: str, owner: str, loop: Loop) -> bool:
        """Does the clear throw away what the round before it in the same loop filled?

        And is that what the step is there for: does it find nothing but such a round's loss?
        """
        inside = {
            each.event.backward or str(each.event.spot)
            for each in self._buckets.happenings
            if each.kind is EventKind.BACKWARD and each.event is not None and each.loop is loop
        }
        if not inside or not self._stepped_on(owner) <= inside:
            return False
        fresh = [
            state
            for state in self._states(self._pairs(node, bucket))
            if state.phase(owner) is Phase.FRESH
        ]
        return bool(fresh) and all(
            not each.used_by and each.backward in inside
            for state in fresh
            for each in state.contributions
        )

    def _window_guards(self) -> Iterable[tuple[str, str]]:
        """Yield the owners whose step stands under a counter, and that counter."""
        for each in self._buckets.happenings:
            if each.kind is not EventKind.STEP or each.optimizer is None:
                continue
            for key in sorted(each.guards | each.behind):
                atom = self._program.atoms.get(key)
                counts = key in self._atoms and atom is not None and atom.counter
                if counts and each.loop is not None and self._program.varies(each.loop, key):
                    yield each.optimizer.key, key

    def _stepping_side(self, owner: str, guard: str) -> int:
        """Return 1 if the owner steps where the guard is true, else 0."""
        for each in self._steps_of(owner):
            if guard in each.guards | each.behind:
                true = self._atoms[guard] * 2 + 1
                reached = self._flow.reached.get(id(each), {}).values()
                return int(any(true in literals for pairs in reached for _, literals in pairs))
        return 1

    def _pairs(self, node: Happening, bucket: str) -> list[Pair]:
        return [
            pair
            for pair in self._flow.reached[id(node)].get(bucket, ())
            if not self._flow.states[pair[0]][0].unknown
        ]

    def _judged(self, node: Happening, bucket: str, before: int) -> list[Pair]:
        return [pair for pair in self._pairs(node, bucket) if before in pair[1]]

    def _states(self, pairs: list[Pair]) -> list[BucketState]:
        return [self._flow.states[number][0] for number, _ in pairs]

    def _is_filled(self, node: Happening, bucket: str, before: int) -> bool:
        judged = self._states(self._judged(node, bucket, before))
        return any(state.contributions for state in judged)

    def _is_meant(self, each: Contribution, owner: str) -> bool:
        """Is it a loss for `owner`: its step uses it, and it is proved or nobody else could?"""
        if each.backward not in self._stepped_on(owner):
            return False
        return owner in each.fills or not any(
            each.backward in self._stepped_on(other)
            for other in self._buckets.optimizers
            if other != owner
        )

    def _drops(self, node: Happening, bucket: str, owner: str, before: int, strict: bool) -> bool:
        """Do all judged states lose something, but for those that another way stepped?"""
        drops = []
        for state in self._states(self._judged(node, bucket, before)):
            if strict or state.phase(owner) is not Phase.SPENT:
                drops.append(
                    any(
                        not each.used_by and self._is_meant(each, owner)
                        for each in state.contributions
                    )
                )
        return bool(drops) and all(drops)

    def _stepped_on(self, owner: str) -> set[str]:
        """Return the backwards that a step of `owner` is ever reached with."""
        if owner not in self._uses:
            self._uses[owner] = {
                each.backward
                for step in self._steps_of(owner)
                for bucket in self._buckets.holdings.get(owner, ())
                for number, _ in self._flow.reached.get(id(step), {}).get(bucket, ())
                for each in self._flow.states[number][0].contributions
            }
        return self._uses[owner]

    def _example(self, pairs: list[Pair]) -> BucketState:
        return next(
            state
            for state in self._states(pairs)
            if any(not each.used_by for each in state.contributions)
        )
