"""The source lines around a spot, with a caret under what is meant.

Source is untrusted text: control characters are shown, never sent to the
terminal, and wide characters count for what they cover on the screen.
"""

from __future__ import annotations

import io
import json
import tokenize
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from zerograd.lifecycle.events import Spot

# (path, cell) -> the lines there, without line ends; () where there is nothing to read
Source = Callable[[str, int | None], Sequence[str]]

TAB = 4
_NEAR = 12  # lines further off would make the excerpt a listing
_MOST_BYTES = 20_000_000  # a larger file is not source that a person wrote


@lru_cache(maxsize=64)
def read_source(path: str, cell: int | None) -> tuple[str, ...]:
    """Return the lines of a file, or of one code cell of a notebook; () if it cannot be read."""
    try:
        file = Path(path)
        if file.stat().st_size > _MOST_BYTES:
            return ()
        data = file.read_bytes()
        if cell is not None:
            return _cell_lines(data, cell)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return tuple(_split(data.decode(encoding, errors="replace")))
    except (OSError, ValueError, SyntaxError, LookupError, AttributeError, TypeError):
        return ()  # an excerpt is a courtesy: the finding stands without it


def _cell_lines(data: bytes, cell: int) -> tuple[str, ...]:
    notebook = json.loads(data.decode("utf-8"))
    cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
    code = [each for each in cells if each.get("cell_type") == "code"]
    if not 1 <= cell <= len(code):
        return ()
    source = code[cell - 1].get("source", code[cell - 1].get("input", ""))
    text = source if isinstance(source, str) else "".join(source)
    return tuple(_split(text))


def _split(text: str) -> list[str]:
    """Split as Python's parser counts lines: form feeds and the like end none."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def visible(text: str) -> str:
    """Return `text` with control and direction characters spelled out, tabs kept.

    >>> visible("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(char if char == "\t" or not _is_control(char) else _spell(char) for char in text)


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _spell(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def display_width(text: str) -> int:
    """Return how many columns `text` covers in a terminal."""
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def excerpt(
    spot: Spot,
    source: Source,
    *,
    also: Iterable[int] = (),
    around: int = 1,
    width: int = 100,
) -> list[str]:
    """Return the lines to show for `spot`: numbered, with a caret line; [] without source.

    Args:
        also: further lines of the same file worth seeing, such as those of the trail.
        around: how many neighbours each of these lines brings along.
    """
    lines = source(spot.path, spot.cell)
    if not 1 <= spot.line <= len(lines):
        return []
    near = {number for number in (*also, _header(spot.line, lines)) if _is_near(number, spot)}
    shown = _with_neighbours({spot.line, *near}, around, lines)
    digits = len(str(shown[-1]))
    room = max(20, width - digits - 5)
    first, last = _span(spot, lines[spot.line - 1])
    start = _crop_start(lines[spot.line - 1], first, last, room)
    result = []
    previous = shown[0]
    for number in shown:
        if number > previous + 1:
            result.append(f" {'.' * min(digits, 3):>{digits}} |")
        text = _cropped(_expanded(lines[number - 1]), start, room)
        result.append(f" {number:>{digits}} | {text}".rstrip())
        if number == spot.line:
            result.append(f" {'':>{digits}} | {_carets(lines[number - 1], first, last, start)}")
        previous = number
    return result


def _is_near(number: int, spot: Spot) -> bool:
    return number > 0 and abs(number - spot.line) <= _NEAR


def _header(number: int, lines: Sequence[str]) -> int:
    """Return the line that opens the block around a line, most often its loop; 0 if none does."""
    inside = _indent(lines[number - 1])
    for above in range(number - 1, 0, -1):
        text = lines[above - 1]
        if text.strip() and not text.lstrip().startswith("#") and _indent(text) < inside:
            return above
    return 0


def _indent(text: str) -> int:
    expanded = text.expandtabs(TAB)
    return len(expanded) - len(expanded.lstrip())


def _says_nothing(text: str, inside: int) -> bool:
    """Is it blank, or past the end of the block?"""
    return not text.strip() or _indent(text) < inside


def _with_neighbours(numbers: set[int], around: int, lines: Sequence[str]) -> list[int]:
    wide = {
        number
        for centre in numbers
        for number in range(centre - around, centre + around + 1)
        if 1 <= number <= len(lines)
    }
    shown = sorted(wide)
    # A gap of one line is shorter shown than marked, and blank edges say nothing.
    shown = sorted({*shown, *(n + 1 for n in shown if n + 2 in wide)})
    while shown[0] not in numbers and not lines[shown[0] - 1].strip():
        del shown[0]
    inside = _indent(lines[max(numbers) - 1])
    while shown[-1] not in numbers and _says_nothing(lines[shown[-1] - 1], inside):
        del shown[-1]
    return shown


def _span(spot: Spot, line: str) -> tuple[int, int]:
    """Return the columns [first, last) to underline on the spot's own line, from 0."""
    text_end = len(line.rstrip())
    first = max(0, min(spot.column - 1, len(line)))
    if spot.end_line > spot.line:
        last = text_end
    elif spot.end_column > spot.column:
        last = min(spot.end_column - 1, len(line))
    elif first == 0:  # a live finding knows its line but not its columns
        first = len(line) - len(line.lstrip())
        last = text_end
    else:
        last = first + 1
    return first, max(last, first + 1)


def _expanded(text: str) -> str:
    return visible(text.rstrip()).expandtabs(TAB)


def _crop_start(line: str, first: int, last: int, room: int) -> int:
    """Return the column where the shown part of all lines begins, so that the caret is in it."""
    end = display_width(_expanded_to(line, last))
    if end <= room:
        return 0
    begin = display_width(_expanded_to(line, first))
    return max(0, min(begin - 8, end - room + 4))


def _expanded_to(line: str, column: int) -> str:
    return visible(line[:column]).expandtabs(TAB)


def _cropped(text: str, start: int, room: int) -> str:
    if start == 0 and display_width(text) <= room:
        return text
    shown, at = "", 0
    for char in text:
        at += _cells(char)
        if at <= start:
            continue
        if at > start + room - 1:
            return (_mark(shown, start) + "…") if shown else "…"
        shown += char
    return _mark(shown, start)


def _mark(shown: str, start: int) -> str:
    return "…" + shown[1:] if start and shown else shown


def _carets(line: str, first: int, last: int, start: int) -> str:
    before = display_width(_expanded_to(line, first)) - start
    under = display_width(_expanded_to(line, last)) - start - before
    return " " * max(0, before) + "^" * max(1, under)
