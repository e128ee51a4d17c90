"""The judge, asked once: a loop repeats itself, and so do its judgements.

Each distinct event is a Symbol and each distinct state of the judge a Node, with
an edge for every symbol met there. A training loop soon goes round a small ring
of nodes, at the price of one dictionary look-up an event.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.lifecycle.findings import Finding
from zerograd.lifecycle.judge import Judge
from zerograd.lifecycle.rule import Rule
from zerograd.lifecycle.state import INITIAL, UNKNOWN, BucketState
from zerograd.lifecycle.summary import LONG
from zerograd.lifecycle.window import Window

MOST_EDGES = 4_096  # past that the memory starts anew; a loop needs a dozen
MOST_SITES = 1_024  # of a round that comes to no step: past that it is forgotten where it began
_STEPS = (EventKind.STEP, EventKind.STEP_SKIPPED)
_STARTS = (EventKind.BACKWARD, EventKind.CLEAR)


class _Site(NamedTuple):
    """Where an event of a round comes from, and what it reaches."""

    is_start: bool  # a call that turns of most loops begin with
    kind: EventKind
    spot: Spot
    reach: frozenset[str]

    @classmethod
    def of(cls, symbol: Symbol) -> _Site:
        event = symbol.event
        is_start = event.kind in _STARTS and not symbol.is_by_hand and not symbol.goes_on
        return cls(is_start, event.kind, event.spot, frozenset(event.reach))

    def is_again(self, others: Collection[_Site]) -> bool:
        """Does it come back to where one of these was?"""
        return any(self[:3] == each[:3] and self.reach & each.reach for each in others)


@dataclass(slots=True, eq=False)
class Symbol:
    """One event as it comes again and again, and how often it has come."""

    event: Event
    call: Any = None  # how the hooks know it again; see `ride`
    is_by_hand: bool = False  # done to `.grad` itself, in no call
    goes_on: bool = False  # within a backward that was heard already: no turn begins with it
    shown: Event | None = None  # the event in the user's names, for a trace
    kin: int = 0  # the same for all that differ in what they fill alone; see `kindred`
    count: int = 0


@dataclass(slots=True, eq=False)
class Edge:
    """What one symbol does in one node."""

    node: Node
    findings: tuple[Finding, ...] = ()
    window: Window | None = None  # the one it closes, if that must be counted
    new_round: bool = False
    closed: Window | None = None  # the one it closes, counted or not


@dataclass(slots=True, eq=False)
class Node:
    """One state of the judge, and what is asked of it at every event."""

    snapshot: Any
    edges: dict[Symbol, Edge] = field(default_factory=dict)
    filled: frozenset[str] = frozenset()  # buckets that hold something
    spent: frozenset[str] = frozenset()  # of these, those used in full
    used: frozenset[str] = frozenset()  # those that hold something used
    unused: frozenset[str] = frozenset()  # and those that hold something nobody used
    unknown: frozenset[str] = frozenset()


class Memo:
    """Feeds symbols to a judge and remembers every answer.

    It also counts rounds: a round is one turn of the training loop, and ends
    where, after a step, a backward or clear comes from a spot already met in it and to
    gradients that it had reached before: of twenty agents that learn at one line, each has its
    part in the turn. In a round with neither, where gradients are assigned from elsewhere,
    what else there is does.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._judge = Judge(rules)
        self._judge.hold("", ())  # so that a bucket which nobody holds has no owner
        self._held: set[str] = set()
        self._nodes: dict[Hashable, Node] = {}
        self._edges = 0
        self.rounds = 0
        self.node = self.before = self._node(frozenset(), False)
        self.edge = Edge(self.node)  # the last one gone

    def feed(self, symbol: Symbol) -> tuple[Finding, ...]:
        """Judge one event."""
        before = self.node
        edge = before.edges.get(symbol)
        if edge is None:
            edge = self._weigh(symbol)
        self.before, self.node, self.edge = before, edge.node, edge
        symbol.count += 1
        if edge.new_round:
            self.rounds += 1
        if symbol.count <= LONG or edge.window is not None:
            return edge.findings + tuple(self._judge.count(symbol.event, edge.window))
        return edge.findings

    def count(self, event: Event, window: Window) -> list[Finding]:
        """Count a window that was closed without being fed."""
        return self._judge.count(event, window)

    def complete(self, event: Event) -> Event:
        """Fill in what the holdings tell."""
        return self._judge.complete(event)

    def finish(self, not_due: Collection[str] = ()) -> list[Finding]:
        """Return the findings that are known only at the end."""
        self._go_to(self.node)
        return self._judge.finish(not_due)

    def hold(self, owner: str, buckets: Sequence[str]) -> None:
        """Say that `owner` holds these buckets from now on."""
        self._judge.hold(owner, buckets)
        self._held.add(owner)
        self._start_anew()

    def holds(self, owner: str) -> bool:
        """Has anything been said of what `owner` holds?"""
        return owner in self._held

    def knows(self, bucket: str) -> bool:
        """Has anything happened to this bucket?"""
        return any(name == bucket for name, _ in self.node.snapshot[0][0])

    def state(self, bucket: str, node: Node | None = None) -> BucketState:
        """Return the state of a bucket, in the present node if none is given."""
        for name, state in (node or self.node).snapshot[0][0]:
            if name == bucket:
                return state  # type: ignore[no-any-return]
        return INITIAL

    @property
    def was_stepped(self) -> bool:
        """Had the round that goes on come to a step before the last event?"""
        return not self.edge.new_round and bool(self.before.snapshot[2])

    def last_fill(self, bucket: str) -> str:
        """Return which backward filled the bucket last."""
        contributions = self.state(bucket).contributions
        return contributions[-1].backward if contributions else ""

    def split(self, bucket: str, part: str) -> None:
        """Give a part of a bucket a history of its own."""
        self._go_to(self.node)
        self._judge.split(bucket, part)
        self._start_anew(moved=True)

    def inherit(self, owner: str, heir: str, bucket: str) -> None:
        """Take what an owner that is gone has used of a bucket as used by one that came later."""
        self._go_to(self.node)
        self._judge.inherit(owner, heir, bucket)
        self._start_anew(moved=True)

    def forget(self, owner: str, buckets: Sequence[str]) -> None:
        """Drop an owner that is gone."""
        self._go_to(self.node)
        self._judge.forget(owner, buckets)
        self._held.discard(owner)
        self._start_anew(moved=True)

    def lose_sight(self, buckets: Iterable[str]) -> None:
        """Say that something unseen may have touched these buckets."""
        (states, windows), sites, stepped = self.node.snapshot
        now = dict(states) | dict.fromkeys(buckets, UNKNOWN)
        self.node = self._node_of(((tuple(now.items()), windows), sites, stepped))

    def _weigh(self, symbol: Symbol) -> Edge:
        before = self.node
        self._go_to(before)
        event = symbol.event
        findings, window = self._judge.weigh(event)
        _, sites, stepped = before.snapshot
        site = _Site.of(symbol)
        new_round = stepped and _begins_turn(symbol, site, sites)
        begins = new_round or len(sites) >= MOST_SITES
        sites = frozenset({site}) if begins else sites | {site}
        stepped = event.kind in _STEPS or (stepped and not new_round)
        # Windows of one micro-batch have no tail; the rest of an epoch must be counted.
        counted = window if window is not None and window.size != 1 and not event.leaf else None
        edge = Edge(self._node(sites, stepped), tuple(findings), counted, new_round, window)
        if self._edges >= MOST_EDGES:
            self._drop_all()
            edge.node = self._node(sites, stepped)
        else:
            before.edges[symbol] = edge
            self._edges += 1
        return edge

    def _go_to(self, node: Node) -> None:
        self._judge.restore(node.snapshot[0])

    def _start_anew(self, *, moved: bool = False) -> None:
        """Forget every answer: the holdings they rest on have changed."""
        _, sites, stepped = self.node.snapshot
        if not moved:
            self._go_to(self.node)
        self._drop_all()
        self.node = self._node(sites, stepped)

    def _drop_all(self) -> None:
        for node in self._nodes.values():
            node.edges.clear()  # who still holds one holds no other with it
        self._nodes.clear()
        self._edges = 0

    def _node(self, sites: frozenset[Any], stepped: bool) -> Node:
        return self._node_of((self._judge.snapshot(), sites, stepped))

    def _node_of(self, snapshot: Any) -> Node:
        node = self._nodes.get(snapshot)
        if node is None:
            node = self._nodes[snapshot] = Node(snapshot)
            (states, _), _, _ = snapshot
            held = [(bucket, state) for bucket, state in states if state.contributions]
            node.filled = frozenset(bucket for bucket, _ in held)
            node.spent = frozenset(
                bucket for bucket, state in held if all(c.used_by for c in state.contributions)
            )
            node.used = frozenset(
                bucket for bucket, state in held if any(c.used_by for c in state.contributions)
            )
            node.unused = frozenset(
                bucket for bucket, state in held if any(not c.used_by for c in state.contributions)
            )
            node.unknown = frozenset(bucket for bucket, state in states if state.unknown)
        return node


def _begins_turn(symbol: Symbol, site: _Site, sites: Collection[_Site]) -> bool:
    """Does a turn begin with it, after one that has come to a step by way of `sites`?"""
    if symbol.goes_on or not site.is_again(sites):
        return False
    may_be = site.kind in _STEPS or symbol.is_by_hand
    return site.is_start or (may_be and not any(each.is_start for each in sites))
