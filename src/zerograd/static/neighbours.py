"""The other files of a project, searched by their text for who clears, and who updates a scaler.

A function that steps an optimizer it is handed may leave the clear to its callers; these are found
by the words they use, and are not parsed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from zerograd.static.files import read_bytes
from zerograd.static.source import Source

MOST_BYTES = 2_000_000  # a module larger than that is data or generated
MOST_AROUND = 600  # files whose text is searched for callers
MOST_FOLDERS = 2_000  # folders in which such files are looked for
MOST_PLACES = 4  # projects whose texts are held for that at a time
LONGEST = 6_000  # bytes of a function before a call in it that are searched for a clear
AROUND = 600  # bytes before and after a call in which its caller's clear would stand
_NEXT = re.compile(rb"\n\s*(?:async )?def |\nclass ")  # where the next function begins
_BETWEEN = re.compile(rb"\n(?=[ \t]*(?:async )?def |class )")
# a clear, but not the method of an optimizer's wrapper that is one; each begins with its word,
# to which Python skips
_CLEARS = (
    re.compile(rb"zero_grad(?<=\bzero_grad)(?<!def zero_grad)s?\s*\("),
    re.compile(rb"grad(?<=\bgrad)(?<!def grad)\s*=\s*None\b"),
)
_UPDATES = re.compile(rb"scaler\w*\.update\s*\(")
_STEPS = re.compile(rb"scaler\w*\.step\s*\(")
_OTHERS = re.compile(rb"scaler\w*\.update\s*\(|\.update\s*\(\s*\{")  # no update of a trainer


class _Around(NamedTuple):
    """A file that clears gradients or updates a loss scaler, and its lines that import."""

    path: str
    data: bytes
    imports: bytes
    clears: bool


class _Place(NamedTuple):
    """A project: such files in it, and of those that clear the lines that import, or define."""

    around: list[_Around]
    clearing: list[_Around]
    imports: bytes
    defined: bytes


class Neighbours:
    """The files around a source, in its project.

    Args:
        top: returns the root of the project that a folder is in.
    """

    def __init__(self, top: Callable[[str], str]) -> None:
        self._top = top
        self._read: dict[str, _Place] = {}
        self._cleared_in: dict[tuple[str, str], bool] = {}
        self._called: dict[tuple[str, str], bool] = {}
        self._clear_for_others: dict[str, list[tuple[str, bytes]]] = {}

    def is_cleared_by_callers(self, source: Source, name: str, owner: str = "") -> bool:
        """Does another file of the project clear gradients around a call of `name`?

        A function that steps an optimizer it is handed may leave the clear to its
        callers. They are looked for by their text, in the folders around it; with an
        `owner` only among the files that name this class.
        """
        own = os.path.abspath(source.path)
        stem = os.path.splitext(os.path.basename(own))[0]
        parent = os.path.basename(os.path.dirname(own))
        # What every such file holds is asked first: the pattern of the import is slow.
        file, called, cls = stem.encode(), name.encode(), owner.encode()
        place = self._place(os.path.dirname(own))
        if file not in place.imports:
            return False  # most files
        texts = [
            (each.imports, each.data)
            for each in place.clearing
            if file in each.imports
            and called in each.data
            and cls in each.data
            and each.path != own
        ]
        if not texts:
            return False
        file, folder = re.escape(file), re.escape(parent.encode())
        imports = re.compile(
            # `from labml import experiment` is no import of any experiment.py
            rb"^\s*(?:from\s+\.*(?:[\w.]*\b%b)?\s+import\b.*\b%b\b"
            rb"|from\s+[\w.]*\b%b\s+import\b|import\s.*\b%b\b)" % (folder, file, file, file),
            re.MULTILINE,
        )
        call = re.compile(rb"(?<!def )\b" + re.escape(called) + rb"\s*\(")
        return any(
            _may_clear_for(data, found)
            for lines, data in texts
            if imports.search(lines) and not (owner and _replaces(data, cls, called))
            for found in call.finditer(data)
        )

    def is_updated_by_callers(self, source: Source, name: str) -> bool:
        """Does another file of the project that calls `name` update a loss scaler for it?

        A function there that steps through one updates for itself, unless it calls `name`.
        """
        own = os.path.abspath(source.path)
        word = name.encode()
        call = re.compile(rb"^[^#\n]*(?<!def )\b%b\s*\(" % re.escape(word), re.MULTILINE)

        def calls(text: bytes) -> bool:
            return bool(call.search(_OTHERS.sub(b"", text)))

        return any(
            _UPDATES.search(part) and (calls(part) or not _STEPS.search(part))
            for each in self._place(os.path.dirname(own)).around
            if word in each.data and each.path != own and _UPDATES.search(each.data)
            if calls(each.data)
            for part in _BETWEEN.split(each.data)
        )

    def is_named_by_clearers(self, source: Source, name: str) -> bool:
        """Is a name written in another file of the project that clears gradients?"""
        own = os.path.abspath(source.path)
        word = name.encode()
        return any(
            word in each.data
            for each in self._place(os.path.dirname(own)).clearing
            if each.path != own
        )

    def is_cleared_by_takers(self, source: Source, name: str) -> bool:
        """May one who is handed the function `name`, and calls it otherwise, clear for it?

        Nobody calls it by its name then, and another file clears for a loss of others.
        """
        own = os.path.abspath(source.path)
        parts = self._for_others(os.path.dirname(own))
        return any(path != own for path, _ in parts) and not self._is_called(own, name)

    def is_cleared_by_users(self, source: Source, method: str, *, given: bool) -> bool:
        """Does another file clear for others where it calls the method of an object it has?

        Args:
            given: only where the call hands on an optimizer, since everything has such a method.
        """
        own = os.path.abspath(source.path)
        handed = rb"[^()]*opt" if given else b""
        call = re.compile(rb"\.%b\s*\(%b" % (re.escape(method.encode()), handed))
        parts = self._for_others(os.path.dirname(own))
        return any(path != own and call.search(part) for path, part in parts)

    def is_cleared_in(self, source: Source, name: str) -> bool:
        """Does a function of this name, somewhere in the project, clear gradients itself?"""
        folder = os.path.dirname(os.path.abspath(source.path))
        known = self._cleared_in.get((folder, name))
        if known is None:
            start = re.compile(rb"\bdef %b\s*\(" % re.escape(name.encode()))
            written = b"def " + name.encode()  # asked first: far faster than the pattern
            place = self._place(folder)
            known = written in place.defined and any(
                b"zero_grad" in body or b".grad = None" in body
                for each in place.clearing
                if written in each.data
                for found in start.finditer(each.data)
                for body in (
                    _NEXT.split(each.data[found.end() : found.end() + AROUND], maxsplit=1)[0],
                )
            )
            self._cleared_in[folder, name] = known
        return known

    def defines(self, source: Source, name: str) -> bool:
        """Does another file of the project define a function or method of this name?"""
        own = os.path.abspath(source.path)
        others = (path for path in _files(self._top(os.path.dirname(own))) if path != own)
        written = b"def %b(" % name.encode()
        return any(written in text for text in filter(None, map(read_module, others)))

    def _for_others(self, folder: str) -> list[tuple[str, bytes]]:
        """Return the functions around that clear, but send no loss back, each with its file."""
        top = self._top(folder)
        known = self._clear_for_others.get(top)
        if known is None:
            known = [
                (each.path, part)
                for each in self._place(folder).clearing
                for part in _parts_that_clear(each.data)
                if b"backward(" not in part
            ]
            self._clear_for_others = {top: known}  # one project after the other
        return known

    def _is_called(self, own: str, name: str) -> bool:
        """Is a function called by its name in the project?"""
        key = (own, name)
        if key not in self._called:
            folder = os.path.dirname(own)
            call = re.compile(rb"(?<!def )(?<![\w.])%b\s*\(" % re.escape(name.encode()))
            held = {each.path: each.data for each in self._place(folder).around}  # asked first
            others = (path for path in _files(self._top(folder)) if path not in held)
            texts = chain(held.values(), filter(None, map(read_module, others)))
            word = name.encode()
            self._called[key] = any(word in text and call.search(text) for text in texts)
        return self._called[key]

    def _place(self, folder: str) -> _Place:
        """Return what is around `folder`: the files that clear, or update a loss scaler."""
        top = self._top(folder)
        known = self._read.get(top)
        if known is not None:
            return known
        if len(self._read) >= MOST_PLACES:
            self._read.pop(next(iter(self._read)))  # the oldest
        found: list[_Around] = []
        for path in _files(top):
            data = read_module(path) or b""
            clears = b"zero_grad" in data or b".grad = None" in data
            if clears or (b"caler" in data and _UPDATES.search(data)):
                found.append(_Around(path, data, _lines_with(b"import", data), clears))
        imports = b"\n".join([each.imports for each in found if each.clears])
        clearing = [each for each in found if each.clears]
        defined = b"\n".join([_lines_with(b"def ", each.data) for each in clearing])
        known = self._read[top] = _Place(found, clearing, imports, defined)
        return known


def _files(top: str) -> Iterator[str]:
    """Yield the Python files of a project, up to a number."""
    read = 0
    for place, folders, files in islice(os.walk(top), MOST_FOLDERS):
        folders[:] = [each for each in folders if each[0] not in "._" and each != "venv"]
        for file in files:
            if read >= MOST_AROUND:
                break
            if file.endswith(".py"):
                read += 1
                yield os.path.join(place, file)


def _lines_with(word: bytes, data: bytes) -> bytes:
    """Return the lines of `data` that hold the word."""
    found: list[bytes] = []
    at = data.find(word)
    while at >= 0:
        end = data.find(b"\n", at)
        found.append(data[data.rfind(b"\n", 0, at) + 1 : end if end >= 0 else None])
        at = data.find(word, end) if end >= 0 else -1
    return b"\n".join(found)


def _parts_that_clear(data: bytes) -> Iterator[bytes]:
    """Yield the parts of a file, from the head of a function to the next one, that clear."""
    for clears in _CLEARS:
        end = 0
        for found in clears.finditer(data):
            if found.start() >= end:  # not in the part that was the last
                after = _BETWEEN.search(data, found.end())
                end = after.start() if after is not None else len(data)
                yield data[_head(data, found.start()) : end]


def _head(data: bytes, at: int) -> int:
    """Return where the part that holds this place begins."""
    while True:
        at = max(data.rfind(b"def ", 0, at), data.rfind(b"class ", 0, at))
        if at < 0:
            return 0
        line = data.rfind(b"\n", 0, at)
        if line >= 0 and _BETWEEN.match(data, line):
            return line + 1


def _begin(data: bytes, call: int) -> int:
    """Return where to look for a clear before a call: from the head of its function on."""
    head = data.rfind(b"def ", max(0, call - LONGEST), call)
    return max(0, min(call - AROUND, head if head >= 0 else call))


def _may_clear_for(data: bytes, call: re.Match[bytes]) -> bool:
    """Is there a clear around a call that is not for a loss of its own, which steps before it?"""
    after = data[call.end() : call.end() + AROUND]
    if b"zero_grad" in after:
        return True
    _, *parts = data[_begin(data, call.start()) : call.start()].split(b"zero_grad")
    return any(b"backward(" not in part or b"step(" not in part for part in parts)


def _replaces(data: bytes, cls: bytes, method: bytes) -> bool:
    """Is it the file of an heir that has a method of its own instead, and never asks for this?"""
    word, name = re.escape(cls), re.escape(method)
    return (
        re.search(rb"\bclass\s+\w+\([^)]*\b%b\b" % word, data) is not None
        and re.search(rb"\bdef\s+%b\s*\(" % name, data) is not None
        and re.search(rb"(?:super\([^)]*\)|\b%b)\.%b\s*\(" % (word, name), data) is None
    )


def read_module(path: str) -> bytes | None:
    """Return what a file holds; None where it is too large, or cannot be read."""
    return read_bytes(path, _tell_nobody, MOST_BYTES)


def _tell_nobody(problem: str) -> None:
    """The user did not ask for this file."""
