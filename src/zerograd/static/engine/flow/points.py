"""Points of a program: the states that each bucket may be in there, and under which conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

Literals = frozenset[int]  # atom number * 2, plus 1 where it is true
Pair = tuple[int, Literals]  # state number and literals
Point = dict[str, frozenset[Pair]]  # bucket -> pairs

NO_LITERALS: Literals = frozenset()
MOST_PAIRS = 256


class Change(dict[Literals, Literals]):
    """What becomes of literals: worked out once for each set, since few come in many pairs.

    Nor do many sets of pairs: rounds of a loop come again to those of the round before.
    """

    __slots__ = ("_become", "_of_pairs")

    def __init__(self, become: Callable[[Literals], Literals]) -> None:
        self._become = become
        self._of_pairs: dict[frozenset[Pair], frozenset[Pair]] = {}

    def of(self, pairs: frozenset[Pair]) -> frozenset[Pair]:
        """Return the pairs with what becomes of their literals."""
        found = self._of_pairs.get(pairs)
        if found is None:
            found = frozenset([(number, self[literals]) for number, literals in pairs])
            self._of_pairs[pairs] = found
        return found

    def __missing__(self, literals: Literals) -> Literals:
        found = self[literals] = self._become(literals)
        return found


def without_atoms(gone: frozenset[int]) -> Change:
    """Forget what is known of some atoms."""
    return Change(lambda known: frozenset(each for each in known if _atom(each) not in gone))


def one_back(varying: frozenset[int]) -> Change:
    """Give the literals in the next iteration: what may change is known as it was one back.

    A negative literal tells the truth of an atom one iteration back. One of a loop around this
    one stays: its iteration is the same.
    """
    return Change(
        lambda known: frozenset(
            -each - 1 if each >= 0 and each // 2 in varying else each
            for each in known
            if each >= 0 or _atom(each) not in varying
        )
    )


def of_this_round() -> Change:
    """Forget what was true one iteration back."""
    return Change(lambda known: frozenset(each for each in known if each >= 0))


class Side(dict[Literals, Literals | None]):
    """One side of a branch: what is known there of what was known before; None: not reached."""

    __slots__ = ("_fails", "_holds", "_of_pairs")

    def __init__(self, holds: int) -> None:
        self._holds = holds
        self._fails = holds ^ 1
        self._of_pairs: dict[frozenset[Pair], frozenset[Pair]] = {}

    def of(self, pairs: frozenset[Pair]) -> frozenset[Pair]:
        """Return the pairs that come to this side, which then know it."""
        found = self._of_pairs.get(pairs)
        if found is None:
            both = [(number, self[literals]) for number, literals in pairs]
            found = frozenset([(number, known) for number, known in both if known is not None])
            self._of_pairs[pairs] = found
        return found

    def __missing__(self, literals: Literals) -> Literals | None:
        found = None
        if self._fails not in literals:
            found = literals if self._holds in literals else literals | {self._holds}
        self[literals] = found
        return found


class Changes:
    """What a flow does to the conditions that are known, each change worked out once."""

    def __init__(self) -> None:
        self._sides: dict[int, Side] = {}  # by the literal that holds there
        self._one_back: dict[frozenset[int], Change] = {}  # by the atoms that vary
        self._without: dict[frozenset[int], Change] = {}  # by the atoms that are forgotten
        self._of_this_round = of_this_round()

    def side(self, holds: int) -> Side:
        side = self._sides.get(holds)
        if side is None:
            side = self._sides[holds] = Side(holds)
        return side

    def without(self, atoms: frozenset[int]) -> Change:
        change = self._without.get(atoms)
        if change is None:
            change = self._without[atoms] = without_atoms(atoms)
        return change

    def turned(self, pairs: frozenset[Pair], varying: frozenset[int]) -> frozenset[Pair]:
        """The next iteration: what may change is forgotten, but for its last truth."""
        change = self._one_back.get(varying)
        if change is None:
            change = self._one_back[varying] = one_back(varying)
        found = change.of(pairs)
        if len(found) > MOST_PAIRS:
            found = self._of_this_round.of(found)
        if len(found) > MOST_PAIRS:
            found = frozenset((number, NO_LITERALS) for number, _ in found)
        return found


def moved(pairs: frozenset[Pair], move: Callable[[int], int]) -> frozenset[Pair]:
    """Return the pairs with each state as `move` leaves it; many pairs share few states."""
    after = {number: move(number) for number in dict.fromkeys([number for number, _ in pairs])}
    if all(before == number for before, number in after.items()):
        return pairs
    return frozenset([(after[number], literals) for number, literals in pairs])


def _atom(literal: int) -> int:
    return (literal if literal >= 0 else -literal - 1) // 2


def assume(point: Point, side: Side) -> Point:
    """Return the pairs on one side of a branch, which then know that side."""
    return {bucket: side.of(pairs) for bucket, pairs in point.items()}


def without(point: Point, ruled: Literals) -> Point:
    """Return the pairs that know nothing which is ruled out."""
    return {
        bucket: frozenset([pair for pair in pairs if ruled.isdisjoint(pair[1])])
        for bucket, pairs in point.items()
    }


def settle(point: Point, ruled: Literals) -> Point:
    """Return the pairs that know nothing which is ruled out, and that then know it is not so.

    What is `"a"` is not `"b"`, also where nobody comes to ask.
    """
    opposites = frozenset(each ^ 1 for each in ruled)
    return known(without(point, ruled), opposites) if ruled else point


def known(point: Point, literals: Literals) -> Point:
    """Return the point with literals that hold there whatever the path."""
    return {
        bucket: frozenset((number, each | literals) for number, each in pairs)
        for bucket, pairs in point.items()
    }


def told_off(point: Point, once: frozenset[int], atoms: int) -> Point:
    """Return the point with what was true, and is true once at most, known to be over.

    Of `atoms` atoms number n is over under the number n + atoms.
    """
    after: Point = {}
    for bucket, pairs in point.items():
        found = set()
        for number, literals in pairs:
            more = set(literals)
            for atom in once:
                over = (atoms + atom) * 2 + 1
                if atom * 2 + 1 in literals:
                    more.add(over)
                elif over in literals:
                    more.add(atom * 2)
            found.add((number, frozenset(more)))
        after[bucket] = frozenset(found)
    return after


def is_reachable(point: Point) -> bool:
    return not point or any(point.values())


def dropped(point: Point, change: Change) -> Point:
    """After a loop its own conditions say nothing any more."""
    return {bucket: change.of(pairs) for bucket, pairs in point.items()}


def join(points: Sequence[Point | None]) -> Point | None:
    joined: Point | None = None
    for point in points:
        if joined is None:
            joined = point
        elif point is not None and point is not joined:
            joined = _both(joined, point)
    return joined


def _both(one: Point, other: Point) -> Point:
    """Return two points as one; mostly the other brings nothing new, and it is the first itself."""
    more: Point = {}
    for bucket, pairs in other.items():
        before = one.get(bucket)
        if before is None:
            more[bucket] = pairs
        elif pairs is not before and not pairs <= before:
            more[bucket] = before | pairs
    return {**one, **more} if more else one


class Exits:
    """Where paths leave a block other than at its end."""

    __slots__ = ("breaks", "continues", "returns")

    def __init__(self) -> None:
        self.breaks: list[Point] = []
        self.continues: list[Point] = []
        self.returns: list[Point] = []

    def ways(self) -> tuple[list[Point], ...]:
        return (self.breaks, self.continues, self.returns)

    def is_empty(self) -> bool:
        return not (self.breaks or self.continues or self.returns)

    def add(self, other: Exits) -> None:
        self.breaks += other.breaks
        self.continues += other.continues
        self.returns += other.returns


def heaviest(reached: Mapping[int, Mapping[str, Collection[Pair]]]) -> frozenset[str]:
    """Return the buckets that made a flow too long: the one met most, and those half as often."""
    met: Counter[str] = Counter()
    for point in reached.values():
        met.update({bucket: len(pairs) for bucket, pairs in point.items()})
    most = max(met.values(), default=0)
    return frozenset(bucket for bucket, count in met.items() if count * 2 >= most)
