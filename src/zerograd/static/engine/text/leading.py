"""Which lines of a module hold an event, or call what leads to one.

Functions that lead to no event are most of a file, and are never read. Each line is looked at
once, by its text: a name that is called somewhere is enough. What comments say leads nowhere.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from zerograd.static.engine.text.classes import FunctionNode
from zerograd.static.engine.text.places import Places, has_row

# a function whose text holds none of these leaves gradients as they are
GRADIENT_WORDS = ("backward", "zero_grad", ".step", ".grad", "unscale_", "clip_grad")
# and one whose text holds none of these has no events of its own
EVENT_WORDS = (*GRADIENT_WORDS, "requires_grad")
# what only begins like one: `self.steps`, `args.gradient_accumulation_steps`
_LONGER = {".step": ".steps", ".grad": ".gradient_"}
_REST = re.compile(r"\w*")
# behind a name: it is a number, as in `self.step += 1`, `self.step % n`, `self.step = 0`
_NUMBER = re.compile(r" *(?:[-+*/%]|[<>=!]=|[<>]|= *-?\d)")
_SET = re.compile(r" *=(?!=)")
_QUOTES = ("'", '"')
# methods that everything has: a call of one says nothing
_COMMON = frozenset(("train", "step", "eval", "forward", "update", "__init__", "__call__", "run"))

# name, the class of a method, first and last line, and the lines of its documentation
Defined = tuple[str, str, int, int, range]


class LeadingLines:
    """The lines that lead to events, for the functions and methods of one module."""

    __slots__ = ("_lines", "_places")

    def __init__(
        self,
        places: Places,
        defined: Iterable[Defined],
        words: tuple[str, ...],
        away: Iterable[str] = (),
    ) -> None:
        """Look for the lines; `away` are names from other modules that lead to events there."""
        self._places = places
        functions = sorted(defined, key=lambda each: each[2])
        spoken = {row for *_, lines in functions for row in lines}
        found = {row for word in words for row in self._rows_of(word)}
        found.update(row for name in away for row in self._calls_of(name, ""))
        found -= spoken
        found.update(self._calls_that_lead(found, functions) - spoken)
        self._lines = sorted(found)

    def any_in(self, first: int, last: int) -> bool:
        """Does a line from `first` to `last` lead to an event?"""
        return has_row(self._lines, first, last)

    def _calls_that_lead(self, direct: set[int], defined: list[Defined]) -> set[int]:
        """Return the lines that call a function with events, or one that calls it, and so on."""
        firsts = [first for _, _, first, *_ in defined]
        called: set[tuple[str, str]] = set()
        found: set[int] = set()
        waiting = list(direct)
        while waiting:
            row = waiting.pop()
            place = bisect_right(firsts, row) - 1
            if place < 0 or row > defined[place][3]:
                continue  # not in a function
            name, owner, *_ = defined[place]
            if (name, owner) not in called:
                called.add((name, owner))
                new = set(self._calls_of(name, owner)) - direct - found
                found |= new
                waiting.extend(new)
        return found

    def _rows_of(self, word: str) -> Iterator[int]:
        """Yield the lines that hold a word of events."""
        for row, at in self._places.coded(word):
            if self._is_event(word, at):
                yield row

    def _is_event(self, word: str, at: int) -> bool:
        """May the name that holds a word, at this place of the text, be that of an event?

        Not all names do what they speak of: `self.step += 1` counts, `args.clip_grad` is a
        setting, and `if p.requires_grad` only asks.
        """
        text = self._places.text
        longer = _LONGER.get(word)
        if longer and text.startswith(longer, at):
            return False
        end = _REST.match(text, at + len(word)).end()  # type: ignore[union-attr]
        if text.startswith("(", end):
            return not text.startswith("(ctx", end)  # the backward of an operation
        if word == "requires_grad":
            return _SET.match(text, end) is not None or text[end : end + 1] in _QUOTES
        whole = word.removeprefix(".")
        start = at + len(word) - len(whole)
        while _is_word(text[start - 1 : start]):
            start -= 1
        name = text[start:end]
        if name == whole and word != "clip_grad":  # a setting, if it is not called
            return word != ".step" or not _NUMBER.match(text, end)
        # A longer name that is not called is a setting, unless it is handed on to be called.
        return name.endswith("_") or "scaler" in name or f"def {name}(" in text

    def _calls_of(self, name: str, owner: str) -> Iterator[int]:
        """Yield the lines that call a function, or a method, of that name.

        Of a class with a method that everything has, those that make an object of it.
        """
        text, bound = self._places.text, bool(owner)
        if bound and name in _COMMON:
            for row, at in self._places.coded(f"{owner}("):
                if not _is_word(text[at - 1 : at]) and not text.endswith("class ", 0, at):
                    yield row
        for row, at in self._places.coded(f"{name}("):
            if text.endswith(".", 0, at):
                of_self = text.endswith("self.", 0, at) and not _is_word(text[at - 6 : at - 5])
                if bound and (of_self or name not in _COMMON):
                    yield row
            elif not bound and not _is_word(text[at - 1 : at]) and not text.endswith("def ", 0, at):
                yield row


def documentation(function: FunctionNode) -> range:
    """Return the lines of what a function says of itself: that does nothing."""
    first = function.body[0]
    spoken = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return range(first.lineno, (first.end_lineno or 0) + 1) if spoken else range(0)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
