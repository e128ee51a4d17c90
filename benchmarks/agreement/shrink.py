"""Make a program small that shows something: delete lines while it still shows it."""

from __future__ import annotations

import ast
from collections.abc import Callable


def shrink(text: str, shows: Callable[[str], bool]) -> str:
    """Return a text from which no statement can be taken away without losing what it shows."""
    lines = text.splitlines()
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(lines):
            if _parses(candidate) and shows("\n".join(candidate) + "\n"):
                lines = candidate
                changed = True
                break
    return "\n".join(lines) + "\n"


def _smaller(lines: list[str]) -> list[list[str]]:
    """Return the texts with one statement less, the largest statements first."""
    found = []
    for at, line in enumerate(lines):
        end = _end(lines, at)
        found.append((end - at, lines[:at] + lines[end:]))
        if end > at + 1:
            inner = [each[4:] for each in lines[at + 1 : end]]
            found.append((1, lines[:at] + inner + lines[end:]))
        if line.strip() and line.strip() != "pass":
            pad = line[: len(line) - len(line.lstrip())]
            found.append((0, [*lines[:at], f"{pad}pass", *lines[end:]]))
    found.sort(key=lambda each: -each[0])
    return [candidate for _, candidate in found]


def _end(lines: list[str], at: int) -> int:
    depth = len(lines[at]) - len(lines[at].lstrip())
    end = at + 1
    while end < len(lines) and (
        not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > depth
    ):
        end += 1
    return end if lines[at].rstrip().endswith(":") else at + 1


def _parses(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return True
