"""ZG101: a window that is cleared by another count than it is stepped by, so not after each step.

`if (i + 1) % 4 == 0: opt.step()` and, for the log, `if (i + 1) % 50 == 0: opt.zero_grad()`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from zerograd.lifecycle.events import EventKind
from zerograd.static.engine.identity.conditions import SYNC
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.text.remainders import is_modulo
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow
    from zerograd.static.engine.reading.program import Program

LONGEST_WINDOW = 64  # micro-batches, where nothing tells its size; what comes rarer is a log, say
_OF_ACCELERATE = "gradient_accumulation_steps"
# what happens now and then, and is no window's end
_NOW_AND_THEN = frozenset(
    (
        "log",
        "logging",
        "print",
        "report",
        "display",
        "show",
        "plot",
        "save",
        "eval",
        "val",
        "sample",
    )
)


class Counts:
    """The counts that let events through once in so many rounds."""

    def __init__(
        self, program: Program, buckets: Buckets, flow: Flow, atoms: Mapping[str, int]
    ) -> None:
        self._program = program
        self._buckets = buckets
        self._flow = flow
        self._atoms = atoms

    def clear_more_rarely(self, step: Happening) -> bool:
        """Does each clear in the loop of a window's step wait for a rarer count of its own?"""
        if step.loop is None or step.loop.pseudo or step.rescues or step.event is None:
            return False
        windows = [size for _, size in self._counts(step, step)]
        if not windows and SYNC not in step.guards:
            return False
        named = [_name_of(each) for each in windows] or [_OF_ACCELERATE]
        longest = max(_numbers(windows, named, step.unit.source.text), default=LONGEST_WINDOW)
        own = step.guards | step.behind
        mine = set(step.event.buckets)
        clears = [
            each
            for each in self._buckets.happenings
            if each.kind in (EventKind.CLEAR, EventKind.ASSIGN)
            and each.event is not None
            and each.loop is step.loop
            and not each.rescues
            and not mine.isdisjoint((*each.event.buckets, *each.partial))
        ]
        return bool(clears) and all(
            any(
                _is_rarer(size, longest, named)
                for key, size in self._counts(each, step)
                if key not in own
            )
            for each in clears
        )

    def _counts(self, node: Happening, step: Happening) -> Iterator[tuple[str, ast.expr]]:
        """Yield the conditions `i % n == 0` that hold wherever a node is reached, and each `n`."""
        for key in sorted(node.guards | node.behind):
            atom, number = self._program.atoms.get(key), self._atoms.get(key)
            if atom is None or not atom.counter or atom.node is None or number is None:
                continue
            size = _size(atom.node)
            if size is None or step.loop is None or not self._program.varies(step.loop, key):
                continue
            if all(number * 2 + 1 in literals for literals in self._flow.known_at(node)):
                yield key, size


def _size(test: ast.expr) -> ast.expr | None:
    """Return `n` of a test whether `i % n` is zero, or is not: their atom is the same."""
    left = test
    if isinstance(test, ast.Compare):
        zero = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value == 0
        if not zero or not isinstance(test.ops[0], ast.Eq | ast.NotEq):
            return None
        left = test.left
    return left.right if isinstance(left, ast.BinOp) and is_modulo(left) else None


def _numbers(sizes: list[ast.expr], named: list[str], text: str) -> Iterator[int]:
    """Yield the sizes that are written out, and what the file gives to one with a name.

    `accum = 4`, `accum: int = 4`, `Accelerator(gradient_accumulation_steps=4)`, and the default of
    `--accum`.
    """
    for size in sizes:
        if isinstance(size, ast.Constant) and isinstance(size.value, int):
            yield size.value
    for name in filter(None, named):
        word = re.escape(name)
        given = rf"\b{word}\b(?:\s*:\s*int)?\s*=\s*(\d+)\b"
        option = rf"--{word.replace('_', '[_-]')}\b[^)]*default\s*=\s*(\d+)\b"
        yield from (int(each) for wanted in (given, option) for each in re.findall(wanted, text))


def _is_rarer(size: ast.expr, longest: int, named: list[str]) -> bool:
    """Are there fewer such rounds than windows, so that some two steps have no clear between?"""
    if isinstance(size, ast.Constant):
        return isinstance(size.value, int) and size.value > longest
    return _is_now_and_then(_name_of(size)) and not any(map(_is_now_and_then, named))


def _name_of(size: ast.expr) -> str:
    return size.attr if isinstance(size, ast.Attribute) else getattr(size, "id", "")


def _is_now_and_then(name: str) -> bool:
    return not _NOW_AND_THEN.isdisjoint(words_of(name))
