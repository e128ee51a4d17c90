"""The conditions of a root that are told apart, and the loops that each of them is at home in.

Every condition told apart may double the states of a point. So few are known at a time: those
around most events. One that is asked within one loop only is forgotten at its end, and leaves
room for those of the next.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.flow.buckets import NO_BUCKET
from zerograd.static.engine.flow.exclusive import Settled
from zerograd.static.engine.identity.ir import (
    Attempt,
    Block,
    Branch,
    Happening,
    Haze,
    Jump,
    Loop,
    Node,
    Reset,
    Scope,
    walk,
)

MOST_ATOMS = 6  # conditions told apart at one point; the rest say nothing
MOST_MODES = 24  # of those of which one holds at most


class Asked:
    """The conditions of one root.

    Attributes:
        atoms: the number of each condition that is told apart.
        local: the id of a loop -> the numbers of those that nothing outside it asks, and that are
            forgotten where it ends. None, where there is room for all of them.
    """

    __slots__ = ("_inner", "_loads", "_outer", "atoms", "local")

    def __init__(self, block: Block, nodes: list[Node], settled: Settled) -> None:
        ranked = _ranked(nodes)
        self.local: dict[int, frozenset[int]] = {}
        if len(ranked) <= MOST_ATOMS:
            self.atoms = {key: number for number, key in enumerate(ranked)}
            return
        self._outer: dict[int, set[int]] = defaultdict(set)  # a loop -> those right around it
        self._inner: dict[int, set[int]] = defaultdict(set)
        self._loads: dict[int, int] = defaultdict(int)  # how many conditions are at home in it
        homes = self._homes(block, 0, {})
        self.atoms = {}
        at_home: dict[int, set[int]] = defaultdict(set)
        modes = [set(values) for values in settled if _is_of_modes(values)]
        for key in ranked:
            home = homes[key]
            known = self._known_around(home) + self._known_inside(home) - self._loads[home]
            # Of many modes one holds: each more of them is one more state, and not twice as many.
            others = next((each & self.atoms.keys() for each in modes if key in each), set())
            free = len(others) > 1 and all(homes[each] == home for each in others)
            if known < MOST_ATOMS or (free and len(others) < MOST_MODES):
                at_home[home].add(len(self.atoms))
                self.atoms[key] = len(self.atoms)
                self._loads[home] += not free
        self.local = {loop: frozenset(numbers) for loop, numbers in at_home.items() if loop}

    def _homes(
        self, block: Block, loop: int, seen: dict[tuple[int, int], dict[str, int]]
    ) -> dict[str, int]:
        """Return the innermost loop, or 0, that is around all places where a condition is asked.

        A loop that is entered from two places does not keep what it knew from one to the other.
        """
        homes: dict[str, int] = {}
        for node in block:
            key = (id(node), loop)
            if isinstance(node, Scope) and key in seen:
                found = seen[key]
            elif isinstance(node, Loop) and not node.once:
                self._outer[id(node)].add(loop)
                self._inner[loop].add(id(node))
                found = self._within(node, id(node), seen)
            else:
                found = self._within(node, loop, seen)
                if isinstance(node, Scope):
                    seen[key] = found
            if isinstance(node, (Branch, Attempt)) and node.atom:
                homes[node.atom] = loop
            for atom, home in found.items():
                homes[atom] = loop if atom in homes else home
        return homes

    def _within(
        self, node: Node, loop: int, seen: dict[tuple[int, int], dict[str, int]]
    ) -> dict[str, int]:
        found: dict[str, int] = {}
        for inner in node.blocks():
            for atom, home in self._homes(inner, loop, seen).items():
                found[atom] = loop if atom in found else home
        return found

    def _known_around(self, loop: int) -> int:
        """Return how many conditions are known in a loop, most of all."""
        around = max(map(self._known_around, self._outer[loop]), default=0) if loop else 0
        return around + self._loads[loop]

    def _known_inside(self, loop: int) -> int:
        inside = max(map(self._known_inside, self._inner[loop]), default=0)
        return inside + self._loads[loop]


def _is_of_modes(values: dict[str, frozenset[object]]) -> bool:
    """Does each of these conditions name one value, and no two the same?"""
    named = [each for mine in values.values() for each in mine]
    return len(named) == len(values) == len(set(named))


def _ranked(nodes: list[Node]) -> list[str]:
    """Return the conditions worth telling apart, those around most events first.

    A condition around a whole loop says the same in each of its rounds. What decides between
    two events of one round comes before it, and first what parts a step from its clear.
    """
    # Where an exception may be caught, a condition that raises one leads somewhere.
    caught = {id(inner) for node in nodes if isinstance(node, Attempt) for inner in walk(node.body)}
    guards = [node for node in nodes if isinstance(node, (Branch, Attempt)) and node.atom]
    weights: dict[str, int] = {}
    for node in guards:
        weight = _weight(walk(_under(node)), id(node) in caught)
        if isinstance(node, Attempt):  # what the exception kept from running matters, too
            weight = weight or any(map(_decides, walk(node.body)))
        if weight:
            weights[node.atom] = weights.get(node.atom, 0) + weight
    near: dict[str, int] = dict.fromkeys(weights, 0)
    parting: set[str] = set()
    for node in guards if len(weights) > MOST_ATOMS else ():
        if node.atom in near:
            around = walk(_under(node), rounds=False)
            inside = [each for each in around if _decides(each)]
            near[node.atom] += len(inside) + sum(map(_hides, around))
            if _parts(inside):
                parting.add(node.atom)
    return sorted(weights, key=lambda key: (key not in parting, -near[key], -weights[key]))


def _parts(inside: list[Node]) -> bool:
    """Is there a step of which the clear stands elsewhere, or a clear without its step?"""
    touched = [
        {
            bucket
            for each in inside
            if isinstance(each, Happening) and each.event is not None and each.kind is kind
            for bucket in each.event.buckets
        }
        for kind in (EventKind.STEP, EventKind.CLEAR)
    ]
    return touched[0] != touched[1]


def _under(node: Branch | Attempt) -> list[Node]:
    """Return what stands under a condition, whichever way it goes."""
    blocks = node.handlers if isinstance(node, Attempt) else (node.then, node.otherwise)
    return list(chain(*blocks))


def _decides(node: Node) -> bool:
    """Is it an event, or something that skips the rest of the round?"""
    if isinstance(node, Jump):
        return node.how in ("continue", "break")
    if not isinstance(node, Happening) or node.event is None or node.kind is EventKind.TOUCH:
        return False  # who looks at a gradient leaves it as it is
    return node.event.buckets != (NO_BUCKET,)  # one that reaches a part only settles nothing


def _hides(node: Node) -> bool:
    """Is it a call that may have cleared? Where it is not made, there is something to say."""
    return isinstance(node, Haze) and node.whole and not node.spent and bool(node.buckets)


def _weight(nodes: list[Node], caught: bool) -> int:
    """Return how much there is under a condition that it may decide."""
    weight = 0
    for node in nodes:
        if isinstance(node, Happening):
            weight += 4 * (node.event is not None)
        elif isinstance(node, (Haze, Reset)):
            weight += bool(node.buckets)
        elif isinstance(node, Jump):
            weight += node.how != "raise" or caught
    return weight
