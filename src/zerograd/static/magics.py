"""IPython's magics made harmless, line for line, so that a cell parses as Python."""

from __future__ import annotations

import ast
import re

# `%%time` and the like run the rest of the cell as Python; other `%%` cells are not Python
PYTHON_CELL_MAGICS = frozenset({"capture", "prun", "time", "timeit", "python", "python3"})
QUOTES = ('"""', "'''", '"', "'")
_HELP = re.compile(r"[\w.*%\[\]\"'= ]+\?{1,2}")  # `opt.step?`, and no comment that asks something
_ASSIGNED = re.compile(r"([\w.,\[\]\"' ]+)=\s*(!|%(?!=))")


def neutralise(lines: list[str]) -> list[str]:
    """Return the lines of a cell with magics replaced by `pass`, at the same line numbers.

    >>> neutralise(["%matplotlib inline", "if ok:", "    !ls -l", "x = y"])
    ['pass', 'if ok:', '    pass', 'x = y']
    """
    first = next((n for n, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return list(lines)
    if lines[first].startswith("%%"):
        name = lines[first][2:].split(None, 1)[:1]
        if not name or name[0] not in PYTHON_CELL_MAGICS:
            return [""] * len(lines)
        return [*lines[:first], "", *neutralise(lines[first + 1 :])]
    if not any(_maybe_magic(line) for line in lines) or _parses(lines):
        return list(lines)
    return _replace(lines)


def _maybe_magic(line: str) -> bool:
    text = line.strip()
    return (
        text[:1] in ("%", "!", "?")
        or (text.endswith("?") and _HELP.fullmatch(text) is not None)
        or _assigned_magic(text) is not None
    )


def _assigned_magic(text: str) -> str | None:
    """Return the target of `files = !ls` or `t = %timeit -o f()`, else None."""
    assigned = _ASSIGNED.match(text)
    return assigned[1].rstrip() if assigned else None


def _parses(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _replace(lines: list[str]) -> list[str]:
    """Replace magics only where a statement begins: `%` also continues an expression."""
    result: list[str] = []
    depth, quote, continued, in_magic = 0, "", False, False
    for line in lines:
        text = line.strip()
        if in_magic:  # a shell command goes on after a backslash
            result.append("")
            in_magic = text.endswith("\\")
            continue
        if not depth and not quote and not continued and _maybe_magic(line):
            indent = line[: len(line) - len(line.lstrip())]
            target = None if text[:1] in ("%", "!", "?") else _assigned_magic(text)
            result.append(f"{indent}{target} = None" if target else f"{indent}pass")
            in_magic = text.endswith("\\")
            continue
        result.append(line)
        depth, quote, continued = _scan(line, depth, quote)
    return result


def _scan(line: str, depth: int, quote: str) -> tuple[int, str, bool]:
    """Return the bracket depth, the open quote and a continuation after `line`."""
    at = 0
    while at < len(line):
        char = line[at]
        if quote:
            if char == "\\":
                at += 2
                continue
            if line.startswith(quote, at):
                at += len(quote)
                quote = ""
                continue
        elif char == "#":
            return depth, "", False
        elif char in "\"'":
            quote = next(each for each in QUOTES if line.startswith(each, at))
            at += len(quote)
            continue
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth = max(depth - 1, 0)
        at += 1
    continued = line.endswith("\\")
    if len(quote) == 1 and not continued:
        quote = ""  # a plain string ends with its line
    return depth, quote, continued
