"""Which lines of a module hold an event, or call what leads to one.

Functions that lead to no event are most of a file, and are never read. Each line is looked at
once, by its text: a name that is called somewhere is enough.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

# a function whose text holds none of these has no events of its own
EVENT_WORDS = ("backward", "zero_grad", ".step", ".grad", "unscale_", "clip_grad", "requires_grad")
# methods that everything has: a call of one says nothing
_COMMON = frozenset(("train", "step", "eval", "forward", "update", "__init__", "__call__", "run"))

Defined = tuple[str, str, int, int]  # name, the class of a method, first and last line


class LeadingLines:
    """The lines that lead to events, for the functions and methods of one module."""

    __slots__ = ("_lines", "_starts", "_text")

    def __init__(self, lines: list[str], defined: Iterable[Defined]) -> None:
        self._text = "\n".join(lines)
        self._starts = list(accumulate([len(line) + 1 for line in lines], initial=0))
        found = {row for word in EVENT_WORDS for row, _ in self._places_of(word)}
        found.update(self._calls_that_lead(found, sorted(defined, key=lambda each: each[2])))
        self._lines = sorted(found)

    def any_in(self, first: int, last: int) -> bool:
        """Does a line from `first` to `last` lead to an event?"""
        place = bisect_left(self._lines, first)
        return place < len(self._lines) and self._lines[place] <= last

    def _calls_that_lead(self, direct: set[int], defined: list[Defined]) -> set[int]:
        """Return the lines that call a function with events, or one that calls it, and so on."""
        firsts = [first for _, _, first, _ in defined]
        called: set[tuple[str, str]] = set()
        found: set[int] = set()
        waiting = list(direct)
        while waiting:
            row = waiting.pop()
            place = bisect_right(firsts, row) - 1
            if place < 0 or row > defined[place][3]:
                continue  # not in a function
            name, owner, _, _ = defined[place]
            if (name, owner) not in called:
                called.add((name, owner))
                new = set(self._calls_of(name, owner)) - direct - found
                found |= new
                waiting.extend(new)
        return found

    def _calls_of(self, name: str, owner: str) -> Iterator[int]:
        """Yield the lines that call a function, or a method, of that name.

        Of a class with a method that everything has, those that make an object of it.
        """
        text, bound = self._text, bool(owner)
        if bound and name in _COMMON:
            for row, at in self._places_of(f"{owner}("):
                if not _is_word(text[at - 1 : at]) and not text.endswith("class ", 0, at):
                    yield row
        for row, at in self._places_of(f"{name}("):
            if text.endswith(".", 0, at):
                of_self = text.endswith("self.", 0, at) and not _is_word(text[at - 6 : at - 5])
                if bound and (of_self or name not in _COMMON):
                    yield row
            elif not bound and not _is_word(text[at - 1 : at]) and not text.endswith("def ", 0, at):
                yield row

    def _places_of(self, word: str) -> Iterator[tuple[int, int]]:
        """Yield the line and the place of each time that `word` is written."""
        text = self._text
        at = text.find(word)
        while at >= 0:
            yield bisect_right(self._starts, at), at
            at = text.find(word, at + 1)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
