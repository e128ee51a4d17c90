"""The skeleton of a function: its gradient events and the control flow around them.

Everything that neither is an event nor steers one is gone. A node is made once
and interpreted many times, over sets of states.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import Event, EventKind, Spot
from zerograd.static.engine.identity.values import Optimizer
from zerograd.static.engine.text.parts import parts_below

if TYPE_CHECKING:
    from zerograd.static.engine.identity.unit import Unit


class Node:
    __slots__ = ()

    def blocks(self) -> Sequence[Block]:
        """Return the blocks that stand directly inside."""
        return ()


Block = list[Node]
FILLS = (EventKind.BACKWARD, EventKind.ASSIGN)  # what puts something into gradients


class Happening(Node):
    """An event before it is known which buckets there are in the program."""

    __slots__ = (
        "averaged",
        "behind",
        "cleared_as",
        "doubted",
        "event",
        "frames",
        "guards",
        "inner",
        "inside",
        "keys",
        "kind",
        "leaf",
        "lender",
        "loop",
        "marked",
        "maybe",
        "name",
        "node",
        "optimizer",
        "partial",
        "read",
        "rescues",
        "scaler",
        "scope",
        "spares",
        "spot",
        "sure",
        "through",
        "to_none",
        "turns",
        "unit",
    )

    def __init__(
        self,
        kind: EventKind,
        unit: Unit,
        node: ast.AST,
        spot: Spot,
        *,
        optimizer: Optimizer | None = None,
        keys: frozenset[str] | None = None,
        sure: bool = True,
        name: str = "",
        cleared_as: str = "",
        scaler: str = "",
        to_none: bool = True,
        inside: bool = False,
        leaf: bool = False,
        averaged: bool = False,
        through: frozenset[str] = frozenset(),
        read: frozenset[str] = frozenset(),
        lender: frozenset[str] = frozenset(),
        spares: tuple[frozenset[str], ...] = (),
    ) -> None:
        self.kind = kind
        self.unit = unit
        self.node = node
        self.spot = spot
        self.optimizer = optimizer
        self.keys = keys  # buckets by key; None: all that may be meant
        self.sure = sure
        self.name = name  # the object as the user writes it here
        self.cleared_as = cleared_as  # STEP: who clears, if that object has no such method
        self.scaler = scaler
        self.to_none = to_none
        self.inside = inside
        self.leaf = leaf
        self.averaged = averaged
        self.lender = lender  # ASSIGN: whose gradients it is given, as they are
        self.through = through  # BACKWARD: what the loss comes through, frozen networks too
        self.read = read  # BACKWARD: networks of which it comes through the named parts alone
        self.guards: frozenset[str] = frozenset()  # atoms of the branches around it
        self.inner: frozenset[str] = frozenset()  # those of branches inside its innermost loop
        self.frames: frozenset[int] = frozenset()  # the functions that were open around it
        self.behind: frozenset[str] = frozenset()  # those that may skip it by `continue`
        self.turns: frozenset[str] = frozenset()  # atoms that tell whose it is: always somebody's
        self.scope: tuple[int, int] | None = None  # STEP: the lines of the function it is in
        self.marked = False
        self.rescues = False  # it stands where an exception is handled
        self.loop: Loop | None = None
        self.event: Event | None = None  # filled in when the program's buckets are known
        self.partial: tuple[str, ...] = ()  # buckets that a clear reaches in part
        self.spares = spares  # CLEAR of a part: what is behind each output of the whole
        self.doubted: tuple[str, ...] = ()  # buckets that a backward may fill, for all one knows
        self.maybe: tuple[str, ...] = ()  # buckets that a backward may fill, for all we know


class Doubt(IntEnum):
    """How sure it is that nothing else has filled a bucket."""

    NONE = 0
    FORWARD = 1  # a call that cannot be seen was handed the network, and gave back a value
    BETWEEN = 2  # somebody may have, before this function was entered
    UNSEEN = 3  # a call on the way that cannot be seen


class Reset(Node):
    """A network, leaf or optimizer made anew: its buckets are as new."""

    __slots__ = ("buckets", "doubt", "keys", "present")

    def __init__(
        self, keys: frozenset[str], present: bool = False, doubt: Doubt = Doubt.NONE
    ) -> None:
        self.keys = keys
        self.present = present  # not made anew: its gradient is made, of zeros
        self.doubt = doubt  # made by somebody unseen, who may have kept it from before
        self.buckets: tuple[str, ...] = ()


class Made(Node):
    """A network, or an optimizer over networks, is made: another one than had its key before."""

    __slots__ = ("before", "holds", "key", "node", "unit")

    def __init__(
        self,
        key: str,
        *,
        holds: frozenset[str] = frozenset(),
        before: frozenset[str] = frozenset(),
        unit: Unit | None = None,
        node: ast.AST | None = None,
    ) -> None:
        self.key = key
        self.holds = holds  # keys of what an optimizer is made over; none of a network's
        self.before = before  # keys of the networks that it takes the place of
        self.unit = unit  # the module it is written in, of a network
        self.node = node


class Haze(Node):
    """A call that cannot be seen. `whole`: it has the optimizer, so all may have happened.

    With `spent` only gradients that a step of their `holders` has used are concerned: who
    changes those by hand knows why they are still there. With `empty` also buckets that hold none.
    `pauses`: a generator stops here, and what matters is whether it does anything itself.
    `part`: here some of these parameters are cleared, and if it `lacks` any, surely not all.
    """

    __slots__ = (
        *("buckets", "doubt", "empty", "holders", "keys", "lacks", "part", "pauses", "spent"),
        "whole",
    )

    def __init__(
        self,
        keys: frozenset[str] | None,
        whole: bool,
        spent: bool = False,
        doubt: Doubt = Doubt.UNSEEN,
        empty: bool = False,
        pauses: bool = False,
        part: ast.AST | None = None,
        lacks: bool = False,
    ) -> None:
        self.part = part
        self.lacks = lacks
        self.keys = keys
        self.whole = whole
        self.spent = spent
        self.empty = empty
        self.pauses = pauses
        self.doubt = doubt
        self.buckets: tuple[str, ...] = ()
        self.holders: dict[str, list[str]] = {}


class Branch(Node):
    __slots__ = ("atom", "otherwise", "then")

    def __init__(self, atom: str, then: Block, otherwise: Block) -> None:
        self.atom = atom  # empty: nothing is known of it
        self.then = then
        self.otherwise = otherwise

    def blocks(self) -> Sequence[Block]:
        return (self.then, self.otherwise)


class Loop(Node):
    """A loop that runs three times or more.

    `varying` are the atoms whose truth may change from one iteration to the next;
    `endless` loops end by break alone.
    """

    __slots__ = (
        "body",
        "endless",
        "entered",
        "fresh",
        "node",
        "once",
        "otherwise",
        "over",
        "parent",
        "pseudo",
        "shared",
        "steppers",
        "unit",
        "varying",
    )

    def __init__(self, node: ast.AST | None, parent: Loop | None) -> None:
        self.node = node
        self.parent = parent
        self.body: Block = []
        self.otherwise: Block = []
        self.fresh: Block = []  # what is made anew as the loop is entered
        self.varying: set[str] = set()
        self.endless = False
        self.once = False  # its body is run a single time
        self.steppers: frozenset[str] | None = None  # owners that step in it, once asked for
        # Each round has optimizers of its own, but for these; none: it has the same in all rounds.
        self.shared = frozenset[str]()
        self.pseudo = False  # a method that some loop elsewhere calls
        self.entered: frozenset[int] = frozenset()  # the functions that such a call enters
        self.unit: Unit | None = None  # the module it is written in, if it is written
        # what it takes its items from, as far as that is written out
        self.over: ast.expr | None = node.iter if isinstance(node, ast.For) else None

    def blocks(self) -> Sequence[Block]:
        return (self.fresh, self.body, self.otherwise)

    @property
    def text(self) -> str:
        """The loop as it is written; what happens in it may be written in another module."""
        return self.unit.text_of(self.node) if self.unit and self.node is not None else ""

    def binds(self, name: str) -> bool:
        """Is it an item of the loop, another one each round?"""
        target = self.node.target if isinstance(self.node, ast.For | ast.AsyncFor) else None
        return target is not None and any(
            isinstance(each, ast.Name) and each.id == name for each in parts_below(target)
        )


class Scope(Node):
    """A called function: a return ends here."""

    __slots__ = ("body", "number", "unit")

    def __init__(self, body: Block, unit: Unit | None = None, number: int = 0) -> None:
        self.body = body
        self.unit = unit  # the module it is written in
        self.number = number  # of its frame

    def blocks(self) -> Sequence[Block]:
        return (self.body,)


class Attempt(Node):
    """`try`; its atom is true where a handler was entered."""

    __slots__ = ("atom", "body", "finally_", "handlers", "otherwise")

    def __init__(
        self,
        body: Block,
        handlers: list[Block],
        otherwise: Block,
        finally_: Block,
        atom: str = "",
    ) -> None:
        self.atom = atom
        self.body = body
        self.handlers = handlers
        self.otherwise = otherwise
        self.finally_ = finally_

    def blocks(self) -> Sequence[Block]:
        return (self.body, *self.handlers, self.otherwise, self.finally_)


class Jump(Node):
    """`break`, `continue`, `return` or `raise`."""

    __slots__ = ("how",)

    def __init__(self, how: str) -> None:
        self.how = how


class Pause(Node):
    """The `yield` of a context manager: the block of the `with` stands here."""

    __slots__ = ()


PAUSE = Pause()
BREAK, CONTINUE, RETURN, RAISE = (Jump(how) for how in ("break", "continue", "return", "raise"))


_SIMPLE = frozenset[type[Node]](
    (Happening, Haze, Reset, Made, Jump, Pause)
)  # nothing stands inside
_ACTING = (Happening, Haze, Reset, Made, Scope)  # a scope is kept only if something happens in it


def has_effect(block: Block) -> bool:
    """Does anything happen to gradients in there?"""
    for node in block:
        if isinstance(node, _ACTING):
            return True
        if any(has_effect(inner) for inner in node.blocks()):
            return True
    return False


def walk(
    block: Block, seen: set[int] | None = None, *, rounds: bool = True, calls: bool = True
) -> list[Node]:
    """Return every node below `block`, shared ones once.

    Without `rounds` not those of loops, without `calls` not those of functions that are called.
    """
    seen = set() if seen is None else seen
    found: list[Node] = []
    stack: list[Node] = list(reversed(block))
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        found.append(node)
        if type(node) in _SIMPLE:
            continue
        if not rounds and isinstance(node, Loop) and not node.once:
            continue
        if not calls and isinstance(node, Scope):
            continue
        for inner in reversed(node.blocks()):
            if inner:
                stack.extend(reversed(inner))
    return found


def happens(block: Block, kind: EventKind) -> bool:
    """Is there an event of this kind below `block`?"""
    return any(isinstance(each, Happening) and each.kind is kind for each in walk(block))
