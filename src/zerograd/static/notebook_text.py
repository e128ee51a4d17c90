"""New text put into the code cells of a notebook's JSON, every other byte kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)

Span = tuple[int, int]


def put_back(data: bytes, changed: dict[int, str]) -> bytes:
    """Return the notebook in `data` with the text of some code cells (from 0) replaced."""
    text = data.decode("utf-8")
    escape = text.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", text) is not None
    pieces: list[str] = []
    done = 0
    for number, (start, end) in enumerate(_source_spans(text)):
        if number in changed:
            pieces += [text[done:start], _rewritten(text[start:end], changed[number], escape)]
            done = end
    return "".join([*pieces, text[done:]]).encode("utf-8")


def _source_spans(text: str) -> Iterator[Span]:
    """Yield where the source value of each code cell stands, in order."""
    root = _members(text, text.index("{"))
    if "cells" in root:
        sheets = [root["cells"]]
    else:
        sheets = [
            _members(text, sheet[0])["cells"] for sheet in _elements(text, root["worksheets"][0])
        ]
    for sheet in sheets:
        for cell, _ in _elements(text, sheet[0]):
            if text[cell] != "{":
                continue
            parts = _members(text, cell)
            kind = parts.get("cell_type")
            if kind is None or text[slice(*kind)] != '"code"':
                continue
            yield parts.get("source") or parts["input"]


def _members(text: str, at: int) -> dict[str, Span]:
    """Return where the values of the object at `at` stand, by key."""
    found: dict[str, Span] = {}
    at = _next(text, at + 1)
    while text[at] != "}":
        key_end = _end(text, at)
        key = json.loads(text[at:key_end])
        value = _next(text, _next(text, key_end) + 1)  # past the colon
        end = _end(text, value)
        found[key] = (value, end)
        at = _next(text, end)
        if text[at] == ",":
            at = _next(text, at + 1)
    return found


def _elements(text: str, at: int) -> Iterator[Span]:
    """Yield where the elements of the array at `at` stand."""
    at = _next(text, at + 1)
    while text[at] != "]":
        end = _end(text, at)
        yield at, end
        at = _next(text, end)
        if text[at] == ",":
            at = _next(text, at + 1)


def _next(text: str, at: int) -> int:
    """Return where the next token begins; the text is known to be valid JSON."""
    found = _TOKEN.search(text, at)
    assert found is not None
    return found.start()


def _end(text: str, at: int) -> int:
    """Return where the value that begins at `at` ends."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        char = token.group()[0]
        if char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        if depth == 0:
            return token.end()
    raise AssertionError("the text is known to be valid JSON")


def _rewritten(value: str, new: str, escape: bool) -> str:
    """Return the JSON for a cell's new text in the manner of its old `value`."""
    if value.startswith('"'):
        return json.dumps(new, ensure_ascii=escape)
    old = list(_elements(value, 0))
    raw = {json.loads(value[slice(*span)]): value[slice(*span)] for span in old}
    before = value[1 : old[0][0]] if old else ""
    after = value[old[-1][1] : -1] if old else ""
    between = value[old[0][1] : old[1][0]] if len(old) > 1 else f",{before or ' '}"
    lines = [raw.get(line) or json.dumps(line, ensure_ascii=escape) for line in _kept_ends(new)]
    return f"[{before}{between.join(lines)}{after}]"


def _kept_ends(text: str) -> list[str]:
    return [line for line in re.split(r"(?<=\n)", text) if line]
