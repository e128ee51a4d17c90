"""Gradients that one network lends another: `shared_p._grad = local_p.grad`, as A3C's workers do.

The two are one tensor from then on. What the lender's losses add to, the other's step uses; where
no clear comes in between, each step finds all that was added before.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.ir import Happening, Loop, Reset, walk
from zerograd.static.engine.identity.keys import keys_of, touches
from zerograd.static.engine.identity.values import Gradient, Params, Value
from zerograd.static.engine.text.stores import statements_in


def lender(owner: Value, value: Value) -> frozenset[str]:
    """Return the keys of the network whose own gradients are given to another, as they are."""
    given = value.of if isinstance(value, Gradient) else None
    if not isinstance(given, Params) or not isinstance(owner, Params):
        return frozenset()
    return keys_of(given) if keys_of(given).isdisjoint(keys_of(owner)) else frozenset()


def add_up(happenings: Sequence[Happening]) -> frozenset[str]:
    """Make each such loan a backward where nobody clears in its loop; return who lends.

    A lender that is made anew has gradients of its own each time.
    """
    for each in happenings:
        if each.lender:
            loop = each.loop
            cleared = loop is None or _is_cleared(loop, happenings) or _is_anew(loop, each.lender)
            each.kind = EventKind.ASSIGN if cleared else EventKind.BACKWARD
    return frozenset().union(*(each.lender for each in happenings))


def _is_cleared(loop: Loop, happenings: Sequence[Happening]) -> bool:
    """Does anything clear in the rounds of a loop, whatever it is?"""
    for each in happenings:
        around = each.loop if each.kind is EventKind.CLEAR else None
        while around is not None:
            if around is loop:
                return True
            around = around.parent
    return False


def _is_anew(loop: Loop, keys: frozenset[str]) -> bool:
    return any(
        touches(made, key)
        for each in walk(loop.body)
        if isinstance(each, Reset)
        for made in each.keys
        for key in keys
    )


def ends_where_lent(body: list[ast.stmt]) -> bool:
    """Does a loop over parameters end only where `p.grad is not None`: all are lent by then?"""
    breaks = [each for each in statements_in(body) if isinstance(each, ast.Break)]
    asked = [
        inner
        for each in body
        if isinstance(each, ast.If) and ast.unparse(each.test).endswith("grad is not None")
        for inner in each.body
    ]
    return all(any(each is inner for inner in asked) for each in breaks)
