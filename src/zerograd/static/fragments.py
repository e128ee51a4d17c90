"""Code cut out of its surroundings, as people post it: indented, or without its first `if`.

It is given surroundings that say nothing, and its lines and columns stay those of the text.
"""

from __future__ import annotations

import ast

_ASIDE = ("#", '"""', "'''")
# a clause that a statement before the cut has begun
_BEGUN = {"elif": "if 1: pass", "else": "if 1: pass", "except": "try: pass", "finally": "try: pass"}


def parse_fragment(text: str) -> ast.Module | None:
    """Return the tree of `text` if it is code that is only cut out, else None.

    >>> tree = parse_fragment("    opt.step()\\n")
    >>> tree.body[0].lineno, tree.body[0].col_offset
    (1, 4)
    >>> parse_fragment("for x in\\n") is None
    True
    """
    lines = text.split("\n")
    starts = [(row, line) for row, line in enumerate(lines) if _is_code(line)]
    if not starts:
        return None
    row, line = starts[0]
    if not _indent(line):
        # the first line lost its indentation where it was marked for copying
        rest = [_indent(each) for _, each in starts[1:]]
        if not rest or not rest[0]:
            return None
        margin = min(rest, key=_width)
        if not margin:
            return None
        lines[row] = margin + line
        tree = _parse_surrounded(lines, [each for each, _ in starts])
        if tree is not None:
            _shift(tree, row + 1, len(margin))
        return tree
    return _parse_surrounded(lines, [each for each, _ in starts])


def _is_code(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith(_ASIDE)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _width(indent: str) -> int:
    return len(indent.expandtabs(8))


def _parse_surrounded(lines: list[str], rows: list[int]) -> ast.Module | None:
    """Parse with an `if` for each level that the code falls back to."""
    levels: list[str] = []
    for row in rows:
        indent = _indent(lines[row])
        if not levels or _width(indent) < _width(levels[-1]):
            levels.append(indent)
    levels.reverse()  # the outermost first
    around = ["if 1:", *(f"{level}if 1:" for level in levels[:-1] if level)]
    word = lines[rows[0]].split("(", 1)[0].split(":", 1)[0].split(None, 1)[:1]
    if word and word[0] in _BEGUN:
        around.append(levels[-1] + _BEGUN[word[0]])
    try:
        tree = ast.parse("\n".join([*around, *lines]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    ast.increment_lineno(tree, -len(around))
    body = tree.body
    while body and isinstance(body[0], ast.If) and body[0].lineno < 1 and body[0].body:
        body = [*body[0].body, *body[0].orelse, *body[1:]]
    tree.body = [each for each in body if each.end_lineno is None or each.end_lineno >= 1]
    return tree


def _shift(tree: ast.Module, row: int, columns: int) -> None:
    for node in ast.walk(tree):
        if getattr(node, "lineno", None) == row:
            node.col_offset -= columns  # type: ignore[attr-defined]
        if getattr(node, "end_lineno", None) == row:
            node.end_col_offset -= columns  # type: ignore[attr-defined]
