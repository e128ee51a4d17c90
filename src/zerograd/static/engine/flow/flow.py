"""The states that each line may be reached in.

A point of the program holds, for each bucket, a set of (state, literals): the
state a bucket may be in, and the conditions under which it is. States and events
are numbered and every transition is computed once, so that following a path
costs dictionary look-ups only.
"""

from __future__ import annotations

from collections.abc import Callable

from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.state import INITIAL
from zerograd.static.engine.flow.exclusive import Ruled
from zerograd.static.engine.flow.points import (
    NO_LITERALS,
    Changes,
    Exits,
    Literals,
    Pair,
    Point,
    assume,
    dropped,
    is_reachable,
    join,
    known,
    moved,
    settle,
    told_off,
    without,
)
from zerograd.static.engine.flow.rounds import NO_CYCLE, Cycle
from zerograd.static.engine.flow.steppers import shared_buckets
from zerograd.static.engine.flow.transitions import Transitions
from zerograd.static.engine.identity.ir import (
    Attempt,
    Block,
    Branch,
    Doubt,
    Happening,
    Haze,
    Jump,
    Loop,
    Node,
    Reset,
    Scope,
    has_effect,
    walk,
)
from zerograd.static.engine.reading.counters import Edges

MOST_ROUNDS = 24
MOST_NODES = 128_000


class Flow:
    """One interpretation of a root's skeleton.

    `reached` holds, for each event, every pair it was reached with.
    """

    def __init__(
        self,
        atoms: dict[str, int],
        varying: dict[int, frozenset[int]],
        edges: dict[int, Edges],
        onces: dict[int, frozenset[int]],
        cycles: dict[int, Cycle],
        local: dict[int, frozenset[int]],
        ruled: dict[str, Ruled],
        left_out: frozenset[int] = frozenset(),
    ) -> None:
        self._atoms = atoms  # key -> number
        self._edges = edges  # id of a loop -> what is known of its first and last iteration
        self._onces = onces  # id of a loop -> atoms that are true in one iteration at most
        self._cycles = cycles  # id of a loop -> what is known of each of its rounds, over and over
        self._local = local  # id of a loop -> numbers of the atoms that are asked in it alone
        self._ruled = ruled  # key -> the literals that its truth rules out
        self._left_out = left_out  # ids of calls that are not followed: they may do anything
        self._varying = varying  # id of a loop -> numbers of the atoms that change in it
        self._transitions = Transitions()
        self.states = self._transitions.states
        self._known: dict[tuple[int, frozenset[tuple[str, frozenset[Pair]]]], Point | None] = {}
        self._changes = Changes()
        self._known_at: dict[int, frozenset[Literals]] = {}
        self._tries: list[list[Point | None]] = []  # the points seen in each `try` that is open
        self.reached: dict[int, dict[str, set[Pair]]] = {}
        self.end: Point | None = None  # where the root ends
        # nodes interpreted, those with many states counting more, and states never met before;
        # past that the root is left alone
        self.budget = MOST_NODES
        self._met = 0

    def start(self, buckets: list[str], hazy: bool) -> Point:
        state = INITIAL._replace(absent=False) if hazy else INITIAL
        number = self._transitions.number(state, Doubt.BETWEEN if hazy else Doubt.NONE)
        return {bucket: frozenset(((number, NO_LITERALS),)) for bucket in buckets}

    def run(self, block: Block, point: Point | None) -> Point | None:
        exits = Exits()
        end = self._block(block, point, exits)
        self.end = join([end, *exits.returns])
        return self.end

    def known_at(self, node: Happening) -> frozenset[Literals]:
        """Return what is known where an event is reached, whatever its states: once all is run."""
        known = self._known_at.get(id(node))
        if known is None:
            found = self.reached.get(id(node), {}).values()
            known = frozenset(literals for pairs in found for _, literals in pairs)
            self._known_at[id(node)] = known
        return known

    def _block(self, block: Block, point: Point | None, exits: Exits) -> Point | None:
        for node in block:
            if point is None or self.budget <= 0:
                return None
            new = len(self.states) - self._met
            self._met += new
            self.budget -= 1 + sum(map(len, point.values())) // 8 + 2 * new
            read = _READERS.get(type(node))
            if read is not None:
                point = read(self, node, point, exits)
        return point

    def _jump(self, node: Jump, point: Point, exits: Exits) -> None:
        if node.how == "break":
            exits.breaks.append(point)
        elif node.how == "continue":
            exits.continues.append(point)
        elif node.how == "return":
            exits.returns.append(point)
        elif node.how == "raise":
            self._note(point)

    def _happen(self, node: Happening, point: Point, exits: Exits | None = None) -> Point:
        event = node.event
        if event is None:
            return self._present(point, node.maybe) if node.maybe else point
        reached = self.reached.setdefault(id(node), {})
        after: Point = {}
        for bucket, pairs in point.items():
            reached.setdefault(bucket, set()).update(pairs)
            after[bucket] = self._transitions.after(event, bucket, pairs)
        if node.partial:
            for bucket in node.partial:
                if bucket in after:
                    after[bucket] = self._forgotten(after[bucket])
        for bucket in node.doubted:
            if bucket in after:
                after[bucket] = self._hazed(after[bucket], Doubt.UNSEEN)
        if node.maybe:
            after = self._present(after, node.maybe)
        self._note(after)
        return after

    def _note(self, point: Point | None) -> None:
        for points in self._tries:
            points.append(point)

    def _forgotten(self, pairs: frozenset[Pair]) -> frozenset[Pair]:
        return moved(pairs, self._transitions.forgotten)

    def _haze(self, node: Haze, point: Point, exits: Exits | None = None) -> Point:
        after = dict(point)
        for bucket in node.buckets:
            if bucket not in after:
                continue
            if node.spent:
                holders = node.holders.get(bucket, ())
                used = {
                    pair
                    for pair in after[bucket]
                    if self._transitions.is_spent(pair[0], holders, node.empty)
                }
                left = after[bucket] - used
                concerned = frozenset(used)
                if node.whole:
                    after[bucket] = left | self._forgotten(concerned)
                else:
                    after[bucket] = left | self._hazed(concerned, node.doubt)
            elif node.whole:
                after[bucket] = self._forgotten(after[bucket])
            else:
                after[bucket] = self._hazed(after[bucket], node.doubt)
        return after

    def _hazed(self, pairs: frozenset[Pair], doubt: Doubt) -> frozenset[Pair]:
        return moved(pairs, lambda number: self._transitions.doubted(number, doubt))

    def _reset(self, node: Reset, point: Point, exits: Exits | None = None) -> Point:
        after = dict(point)
        fresh = self._transitions.number(INITIAL, node.doubt)
        for bucket in node.buckets:
            if bucket in after and not node.present:
                after[bucket] = frozenset((fresh, literals) for _, literals in after[bucket])
        return self._present(after, node.buckets) if node.present else after

    def _present(self, point: Point, buckets: tuple[str, ...]) -> Point:
        """Return the point with these gradients there, as far as anyone can tell."""
        after = dict(point)
        for bucket in buckets:
            pairs = after.get(bucket)
            if pairs:
                after[bucket] = moved(pairs, self._transitions.filled)
        return after

    def _branch(self, node: Branch, point: Point, exits: Exits) -> Point | None:
        atom = self._atoms.get(node.atom)
        if atom is None:
            then, otherwise = point, point
        else:
            then = assume(point, self._changes.side(atom * 2 + 1))
            otherwise = assume(point, self._changes.side(atom * 2))
        ruled = self._ruled.get(node.atom)
        if ruled is not None:
            then, otherwise = settle(then, ruled.then), settle(otherwise, ruled.otherwise)
        return join(
            [
                self._block(node.then, then, exits) if is_reachable(then) else None,
                self._block(node.otherwise, otherwise, exits) if is_reachable(otherwise) else None,
            ]
        )

    def _scope(self, node: Scope, point: Point, exits: Exits) -> Point | None:
        if id(node) in self._left_out:
            return {bucket: self._forgotten(pairs) for bucket, pairs in point.items()}
        key = (id(node), frozenset(point.items()))
        if key in self._known:
            self._note(self._known[key])
            return self._known[key]
        inner = Exits()
        end = self._block(node.body, point, inner)
        result = self._known[key] = join([end, *inner.returns])
        return result

    def _attempt(self, node: Attempt, point: Point, exits: Exits) -> Point | None:
        """A handler is entered from anywhere in the body: in all states that there are."""
        if has_effect(node.finally_):
            inner = Exits()
            whole = Attempt(node.body, node.handlers, node.otherwise, [], node.atom)
            end = self._attempt(whole, point, inner)
            for left, leaving in zip(inner.ways(), exits.ways(), strict=True):
                passed = self._block(node.finally_, join(left), exits)
                if passed is not None:
                    leaving.append(passed)
            return self._block(node.finally_, end, exits)
        self._tries.append([point])
        end = self._block(node.body, point, exits)
        anywhere = join([*{id(each): each for each in self._tries.pop()}.values()])
        if anywhere is not None:
            # What raised may be the backward; that the gradient is absent then proves nothing.
            anywhere = self._present(anywhere, tuple(anywhere))
        atom = self._atoms.get(node.atom)
        if atom is not None:
            end = assume(end, self._changes.side(atom * 2)) if end is not None else None
            if anywhere is not None:
                anywhere = assume(anywhere, self._changes.side(atom * 2 + 1))
        if end is not None:
            end = self._block(node.otherwise, end, exits)
        ends = [end]
        for handler in node.handlers:
            ends.append(self._block(handler, anywhere, exits))
        return join(ends)

    def _loop(self, node: Loop, point: Point, exits: Exits) -> Point | None:
        """A loop that is entered in states in which it was entered before ends as it did then."""
        if node.once:
            inner = Exits()
            end = self._block(node.body, point, inner)
            exits.returns.extend(inner.returns)
            return join([end, *inner.breaks, *inner.continues])
        if self._tries:  # what is seen on the way counts as well
            return self._rounds(node, point, exits)
        key = (id(node), frozenset(point.items()))
        if key in self._known:
            return self._known[key]
        inner = Exits()
        after = self._rounds(node, point, inner)
        if inner.is_empty():
            self._known[key] = after
        else:
            exits.add(inner)
        return after

    def _rounds(self, node: Loop, point: Point, exits: Exits) -> Point | None:
        """Three rounds at least, then until nothing new comes round."""
        varying = self._varying.get(id(node), frozenset())
        edges = self._edges.get(id(node), Edges())
        later = frozenset(each ^ 1 for each in edges.only | edges.gone)
        once = self._onces.get(id(node), frozenset())
        over = frozenset(len(self._atoms) + atom for atom in once)  # that they have been true
        local = self._local.get(id(node), frozenset())
        forget = self._changes.without(varying | over | local)
        leave = self._changes.without(local)
        alone = frozenset(point) - shared_buckets(node) if node.shared else frozenset[str]()
        entered = {bucket: point[bucket] for bucket in alone}  # of another one in each round
        point = dropped(point, self._changes.without(over)) if over else point
        point = self._entered(node, point) | entered
        for reset in node.fresh:
            if isinstance(reset, Reset):
                point = self._reset(reset, point)
        cycle = self._cycles.get(id(node), NO_CYCLE)
        begun = edges.only | edges.also | cycle[0]
        if begun:
            point = known(point, begun)
        places: list[dict[str, set[Pair]]] = [{} for _ in cycle]  # what was seen at each of them
        places[0] = {bucket: set(pairs) for bucket, pairs in point.items()}
        ends: list[Point | None] = []
        now: Point | None = point
        for number in range(1, MOST_ROUNDS * len(cycle) + 1):
            if now is None:
                break
            inner = Exits()
            end = self._block(node.body, now, inner)
            exits.returns.extend(dropped(each, leave) if local else each for each in inner.returns)
            ends.extend(dropped(each, forget) for each in inner.breaks)
            back = join([end, *inner.continues])
            if back is None:
                break
            if edges.last:
                if number >= 3:
                    ends.append(dropped(back, forget))
                back = without(back, edges.last)  # no round comes after
            if once:
                back = told_off(back, once, len(self._atoms))
            back = {bucket: self._changes.turned(pairs, varying) for bucket, pairs in back.items()}
            if once:
                back = told_off(back, once, len(self._atoms))
            if later:
                back = known(back, later)
            if number >= 3 and not node.endless:
                ends.append(dropped(back, forget))
            back |= entered
            place = number % len(cycle)
            if cycle[place]:
                back = known(back, cycle[place])
            seen = places[place]
            fresh = {
                bucket: frozenset(pairs - seen.setdefault(bucket, set()))
                for bucket, pairs in back.items()
            }
            for bucket, pairs in back.items():
                seen[bucket] |= pairs
            if number < 3:
                now = back
            elif any(fresh.values()):
                now = fresh
            else:
                break
        after = join(ends)
        if after is None:
            return None
        return self._block(node.otherwise, after, exits) if node.otherwise else after

    def _entered(self, node: Loop, point: Point) -> Point:
        """A loop entered anew: nobody has stepped in it yet."""
        if node.steppers is None:
            node.steppers = frozenset(
                each.event.owner
                for each in walk([node])
                if isinstance(each, Happening) and each.event and each.event.kind is EventKind.STEP
            )
        steppers = node.steppers
        return {
            bucket: moved(pairs, lambda number: self._transitions.anew(number, steppers))
            for bucket, pairs in point.items()
        }


_READERS: dict[type[Node], Callable[..., Point | None]] = {
    Happening: Flow._happen,
    Branch: Flow._branch,
    Loop: Flow._loop,
    Scope: Flow._scope,
    Jump: Flow._jump,
    Attempt: Flow._attempt,
    Haze: Flow._haze,
    Reset: Flow._reset,
}
