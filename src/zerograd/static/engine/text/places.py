"""Where words stand in a file: each is looked for once, and asked about for many functions."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from zerograd.static.engine.text.parts import inner_of
from zerograd.static.engine.text.said import is_said


class Places:
    """The text of a file, and the rows in which words occur."""

    __slots__ = ("_found", "_rows", "_starts", "text")

    def __init__(self, lines: list[str]) -> None:
        self.text = "\n".join(lines)
        # where each row begins
        self._starts = list(accumulate([len(line) + 1 for line in lines], initial=0))
        self._found: dict[str, list[tuple[int, int]]] = {}
        self._rows: dict[str, list[int]] = {}

    def of(self, word: str) -> list[tuple[int, int]]:
        """Return the row, from 1, and the place in the text of each time that `word` is written."""
        found = self._found.get(word)
        if found is None:
            found = self._found[word] = []
            text, starts = self.text, self._starts
            at = text.find(word)
            while at >= 0:
                found.append((bisect_right(starts, at), at))
                at = text.find(word, at + 1)
        return found

    def coded(self, word: str) -> Iterator[tuple[int, int]]:
        """Yield the same of what is code, and no comment or message."""
        for row, at in self.of(word):
            if not is_said(self.row(row), at - self._starts[row - 1]):
                yield row, at

    def row(self, number: int) -> str:
        """Return one row, by its number from 1."""
        return self.text[self._starts[number - 1] : self._starts[number] - 1]

    def rows(self, word: str) -> list[int]:
        """Return the rows that hold the word, in order."""
        found = self._rows.get(word)
        if found is None:
            found = self._rows[word] = [row for row, _ in self.of(word)]
        return found


def has_row(rows: list[int], first: int, last: int) -> bool:
    """Is one of the rows, which are in order, between these two?"""
    place = bisect_left(rows, first)
    return place < len(rows) and rows[place] <= last


def nodes_on(rows: list[int], tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that cover one of the rows, the outer ones first."""
    waiting = [tree]
    for node in waiting:  # it grows as it is read
        for each in inner_of(node):
            first = getattr(each, "lineno", 0)  # a few have no place of their own
            if not first or has_row(rows, first, each.end_lineno):  # type: ignore[attr-defined]
                waiting.append(each)
                yield each
