"""How far the reading of a program has come, and in which manner it goes on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from zerograd.static.engine.identity.values import Pick

if TYPE_CHECKING:
    from zerograd.static.engine.identity.branches import Test

# expressions read for one file, names and constants not counted: far more than a large script needs
FUEL = 24_000


class TooLong(Exception):
    """Reading has taken more work than a file is given."""


class Progress:
    """The work that is left, and what the reader stands in at the moment."""

    def __init__(self) -> None:
        self.fuel = FUEL  # expressions that may still be read
        self.handing = False  # reading a generator whose items others work on
        self.opened: set[int] = set()  # the calls at the head of a `with`, by their nodes
        self.asking = False  # following a function only for the condition it returns
        self.written: list[ast.AST] = []  # nodes written here in the place of others
        self.peeking = False  # reading an expression only to learn what it is
        self.quiet = 0  # methods being read for what they set or give, at another time
        self.guarded = False  # behind a test that the gradient is there
        self.conditional = 0  # branches being read, within which an assignment may not happen
        self.repeating = 0  # loops being read, each of them once for all of its rounds
        self.around: list[Test] = []  # the tests of those branches, as they hold there
        self.outside = 0  # those of them around the loop over parameters that is being read
        self.items = frozenset[str]()  # names of that loop that differ from one to the next
        self.picking = frozenset[Pick]()  # tests around what is read that only some of them pass
        self.handling = 0  # handlers of exceptions being read

    @property
    def picks_some(self) -> bool:
        """Is something done under a condition within a loop over parameters?"""
        return self.conditional > self.outside
