"""Who steps, on which losses, and on which side of a condition."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.ir import Happening, Loop, Node, Reset, happens, walk
from zerograd.static.engine.identity.keys import spelled
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow


class Steppers:
    """The optimizers of a root, seen from their steps."""

    def __init__(self, buckets: Buckets, flow: Flow, atoms: dict[str, int]) -> None:
        self._buckets = buckets
        self._flow = flow
        self._keys = {number: key for key, number in atoms.items()}
        self._uses: dict[tuple[str, bool], set[str]] = {}

    def _stepped_on(self, owner: str, last: bool = False) -> set[str]:
        """Return the backwards that a step of `owner` is ever reached with, all or the last."""
        if (owner, last) not in self._uses:
            self._uses[owner, last] = {
                each.backward
                for step in self._buckets.happenings
                if step.kind is EventKind.STEP and step.event and step.event.owner == owner
                for bucket in self._buckets.holdings.get(owner, ())
                for number, _ in self._flow.reached.get(id(step), {}).get(bucket, ())
                for each in self._flow.states[number][0].contributions[-1 if last else 0 :]
            }
        return self._uses[owner, last]

    def _losses_of(self, owner: str, loop: Loop) -> list[Happening]:
        """Return the losses that `owner` steps on, of a loop and those in it and around it."""
        used = self._stepped_on(owner)
        mine = set(self._buckets.holdings.get(owner, ()))
        return [
            each
            for each in self._buckets.happenings
            if each.kind is EventKind.BACKWARD
            and each.event is not None
            and (each.event.backward or str(each.event.spot)) in used
            # A function that is called for each of several goes back at the same spot for all.
            and not mine.isdisjoint(each.event.buckets)
            and (loop in loops_around(each.loop) or each.loop in loops_around(loop))
        ]

    def _stepping_side(self, owner: str, guard: str) -> int:
        """Return 1 if the owner steps where the guard is true, else 0."""
        for each in self._buckets.happenings:
            if each.kind is not EventKind.STEP or each.optimizer is None:
                continue
            if each.optimizer.key == owner and guard in each.guards | each.behind:
                number = next(n for n, key in self._keys.items() if key == guard)
                return int(any(number * 2 + 1 in known for known in self._flow.known_at(each)))
        return 1

    def _steps_anyway(self, owner: str, guard: str) -> bool:
        """Does another one step on it in rounds of both kinds? Then this one sits out some."""
        number = next(n for n, key in self._keys.items() if key == guard)
        met = {
            literals
            for each in self._buckets.happenings
            if each.kind is EventKind.STEP and each.event is not None and each.event.owner == owner
            for literals in self._flow.known_at(each)
        }
        return all(any(side not in each for each in met) for side in (number * 2, number * 2 + 1))

    def _takes_turns(self, owner: str, guard: str) -> bool:
        """Does another optimizer step in just those rounds in which this one does not?"""
        number = next(n for n, key in self._keys.items() if key == guard)
        both = (number * 2, number * 2 + 1)
        sides: dict[tuple[str, Loop | None], set[frozenset[int]]] = {}
        for each in self._buckets.happenings:
            if each.kind is EventKind.STEP and each.optimizer is not None:
                sides.setdefault((each.optimizer.key, each.loop), set()).update(
                    literals.intersection(both) for literals in self._flow.known_at(each)
                )
        return any(
            name != owner and mine == {frozenset((own ^ 1,))}
            for (name, loop), mine in sides.items()
            for own in both
            if sides.get((owner, loop)) == {frozenset((own,))}
        )

    def _called_as(self, owner: str) -> set[str]:
        """Return those that only the same lines step: one function, called for each of them."""
        steps = [each for each in self._buckets.happenings if each.kind is EventKind.STEP]
        at = {
            key: {each.spot for each in steps if each.event and each.event.owner == key}
            for key in self._buckets.optimizers
        }
        return {key for key, spots in at.items() if spots == at[owner]}

    def _steps_around_only(self, owner: str, loop: Loop) -> frozenset[int] | None:
        """Do all steps of the owner stand in loops around this one, or after it and in none?

        If so where some condition holds, that is what is returned; nothing, if so anyway.
        """
        around = set(loops_around(loop.parent))
        steps = [
            each
            for each in self._buckets.happenings
            if each.kind is EventKind.STEP and each.event and each.event.owner == owner
        ]
        outside = [
            each for each in steps if each.loop is None or each.loop.pseudo or each.loop in around
        ]
        in_none = any(each.loop is None or each.loop.pseudo for each in outside)
        if not outside or (in_none and not _goes_through(loop)):
            return None
        if len(outside) == len(steps):
            return frozenset()
        inside = [each for each in steps if each not in outside]
        return self._always_met(outside) & {each ^ 1 for each in self._always_met(inside)} or None

    def _always_met(self, nodes: Iterable[Happening]) -> frozenset[int]:
        """Return what holds in the round itself wherever one of these events is reached."""
        met = [
            literals
            for each in nodes
            for pairs in self._flow.reached.get(id(each), {}).values()
            for _, literals in pairs
        ]
        always = frozenset.intersection(*met) if met else frozenset[int]()
        return frozenset(each for each in always if each >= 0)


def _goes_through(loop: Loop) -> bool:
    """Is it a `for` without a `break`? One that is left early may look for a single good round."""
    node = loop.node
    return isinstance(node, ast.For | ast.AsyncFor) and not any(
        isinstance(each, ast.Break) for each in parts_below(node)
    )


def loops_around(loop: Loop | None) -> list[Loop]:
    """Return the loop and those around it, the innermost first."""
    around = []
    while loop is not None:
        around.append(loop)
        loop = loop.parent
    return around


def shared_buckets(loop: Loop) -> frozenset[str]:
    """Return what the same optimizers hold in each round, where others are the round's own."""
    same, own = set[str](), set[str]()
    for each in walk([loop]):
        if isinstance(each, Happening) and each.event is not None and each.optimizer is not None:
            (same if each.optimizer.key in loop.shared else own).update(each.event.buckets)
    return frozenset(same - own)


def items_by_turn(nodes: list[Node]) -> frozenset[str]:
    """Return the items of loops in which nobody steps: no optimizer holds just the one of a turn.

    `for network in agent.networks(): clip_grad_norm_(network.parameters(), 1)`
    """
    found: set[str] = set()
    for loop in nodes:
        if not isinstance(loop, Loop):
            continue
        new = {key for each in loop.body if isinstance(each, Reset) for key in each.keys}
        items = {key for key in new if loop.binds(spelled(key))}
        if items and not happens([loop], EventKind.STEP):
            found |= items
    return frozenset(found)
