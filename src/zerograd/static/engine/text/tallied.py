"""What a file counts up, counts down and gathers: read from its text, asked for many names."""

from __future__ import annotations

import re

from zerograd.static.engine.text.places import Places
from zerograd.static.engine.text.written import is_set_back


class Tallied:
    """The numbers and lists of a file by which it may tell where a window ends."""

    __slots__ = ("_before", "_counted_down", "_gathered", "_places", "_tallies")

    def __init__(self, places: Places) -> None:
        self._places = places
        self._before: dict[str, frozenset[str]] = {}  # by a sign, the words that stand before it
        self._tallies: dict[str, bool | None] = {}
        self._gathered: dict[str, bool] = {}
        self._counted_down: dict[str, bool] = {}

    def is_tallied(self, name: str) -> bool | None:
        """Is a number that is counted up set back to nothing as well? None: it is not counted."""
        if name not in self._tallies:
            text = self._places.text
            counted = f"{name} += " in text if name.endswith("]") else self._is_before(name, " += ")
            counted = counted or f"{name} = {name} + " in text
            self._tallies[name] = is_set_back(text, name) if counted else None
        return self._tallies[name]

    def is_gathered(self, name: str) -> bool:
        """Is a list of that name filled one by one, and emptied again and again?"""
        if not name or not self._is_before(name, ".append("):
            return False  # most names
        known = self._gathered.get(name)
        if known is None:
            text = self._places.text
            # It begins with the name, to which Python skips.
            empty = rf"{name}(?<=\b{name})(?:: [^=\n]+)? = \[\]"
            emptied = len(re.findall(empty, text))
            known = self._gathered[name] = emptied > 1 or f"{name}.clear()" in text
        return known

    def is_counted_down(self, name: str) -> bool:
        """Is one taken off a number of that name anywhere?"""
        known = self._counted_down.get(name)
        if known is None:
            taken_off = self._is_before(name, " -= 1")
            known = taken_off or f"{name} = {name} - 1" in self._places.text
            self._counted_down[name] = known
        return known

    def _is_before(self, name: str, sign: str) -> bool:
        """Is `name` written before the sign anywhere, or at the end of a longer name?"""
        words = self._before.get(sign)
        if words is None:
            text = self._places.text
            ends = [at for _, at in self._places.of(sign)]
            words = self._before[sign] = frozenset(_word_before(text, end) for end in ends)
        return any(word.endswith(name) for word in words)


def _word_before(text: str, end: int) -> str:
    start = end
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return text[start:end]
