"""Which conditions each event depends on."""

from __future__ import annotations

import ast
from typing import NamedTuple

from zerograd.static.engine.identity.ir import (
    Attempt,
    Block,
    Branch,
    Happening,
    Jump,
    Loop,
    Node,
    Scope,
    walk,
)

_NONE: frozenset[str] = frozenset()


class _Around(NamedTuple):
    """The conditions at one place."""

    guards: frozenset[str] = _NONE  # of the branches around it
    inner: frozenset[str] = _NONE  # of those inside its innermost loop
    behind: frozenset[str] = _NONE  # of the branches of that loop that may skip it
    skipping: tuple[str, ...] = ("continue", "return")  # the jumps that skip the rest of a round


def mark_guards(block: Block) -> None:
    """Tell every event below `block` which conditions it depends on."""
    _mark(block, _Around(), {})


_Seen = dict[tuple[int, tuple[str, ...]], _Around]


def _mark(block: Block, around: _Around, seen: _Seen) -> None:
    for node in block:
        if type(node) is Happening:
            node.guards = node.guards & around.guards if node.marked else around.guards
            node.behind = node.behind & around.behind if node.marked else around.behind
            node.inner = node.inner | around.inner
            node.marked = True
            continue
        # What is called from many places depends on what it depends on in all of them. That is
        # put together here, as there are more ways to come to it than can be gone one by one.
        key = id(node), around.skipping
        known = seen.get(key)
        here = around if known is None else _met(known, around)
        if here != known:
            seen[key] = here
            _mark_inside(node, here, seen)
        if (
            type(node) is Attempt
            and node.atom
            and any(_skips(each, around) for each in node.handlers)
        ):
            around = around._replace(behind=around.behind | {node.atom})
        if (
            type(node) is Branch
            and node.atom
            and _skips(node.then, around) != _skips(node.otherwise, around)
        ):
            # `if …: continue` guards all that follows
            around = around._replace(behind=around.behind | {node.atom})
        elif isinstance(node, Branch) and node.atom:
            skipping = _skipping_whole(node, around)
            around = around._replace(behind=around.behind | skipping) if skipping else around


def _met(one: _Around, other: _Around) -> _Around:
    return _Around(
        one.guards & other.guards,
        one.inner | other.inner,
        one.behind & other.behind,
        one.skipping,
    )


def _mark_inside(node: Node, around: _Around, seen: _Seen) -> None:
    within = around
    if type(node) is Branch and node.atom:
        own = frozenset((node.atom,))
        within = _Around(around.guards | own, around.inner | own, around.behind, around.skipping)
    elif type(node) is Loop and not node.once:
        within = _Around(around.guards, skipping=("continue",))
    elif type(node) is Scope:  # who returns from it goes on with the round
        within = _Around(around.guards, around.inner, around.behind)
    elif type(node) is Attempt and node.atom:
        own = frozenset((node.atom,))
        caught = around._replace(guards=around.guards | own, inner=around.inner | own)
        for part in node.handlers:
            _mark(part, caught, seen)
    for part in node.blocks():
        if not (type(node) is Attempt and any(part is each for each in node.handlers)):
            _mark(part, within, seen)


def _skipping_whole(node: Branch, around: _Around) -> frozenset[str]:
    """Return the condition whose first part this is, if it skips: `if …: continue` of two parts."""
    for block in node.blocks():
        for whole in block[:1]:
            if not isinstance(whole, Branch) or not _is_whole_of(whole, node):
                continue
            asked = (each for each in walk([node]) if isinstance(each, Branch))
            if any(
                each.atom == whole.atom
                and _skips(each.then, around) != _skips(each.otherwise, around)
                for each in asked
            ):
                return frozenset((whole.atom,))
    return _NONE


def _is_whole_of(whole: Branch, part: Branch) -> bool:
    """Is it asked for an `and` or `or` that has the other as a part?"""
    return whole.atom != part.atom and part.atom in whole.atom


def _skips(block: Block, around: _Around) -> bool:
    """Does the round of the loop end in there, or what this function does in it?"""
    return any(isinstance(node, Jump) and node.how in around.skipping for node in block)


def are_alternatives(one: Happening, other: Happening) -> bool:
    """Do two events stand in the two branches of one `if`?"""
    lines = sorted((one.spot.line, other.spot.line))
    return any(
        isinstance(each, ast.If)
        and each.orelse
        and each.lineno <= lines[0] < each.orelse[0].lineno <= lines[1]
        and lines[1] <= (each.end_lineno or 0)
        for each in one.unit.statements()
    )


def happens_wherever(each: Happening, other: Happening) -> bool:
    """Is `each` done in every round that comes to `other`, in the same function?"""
    return (
        each.guards <= other.guards and each.behind <= other.behind and each.frames == other.frames
    )
