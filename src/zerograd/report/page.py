"""A Markdown page as text for a terminal: headings, paragraphs, lists, code, tables.

It knows the Markdown that our own pages use, not all of it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from zerograd.report.excerpt import display_width
from zerograd.report.terminal import Paint

_ITEM = re.compile(r"^(\s*)([-*]|\d+\.)\s+")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*`])\*([^*`\s][^*`]*?)\*(?![\w*`])")
_RULER = re.compile(r"^\|?[\s:|-]+\|?$")


def render(markdown: str, *, color: bool = False, width: int = 100) -> str:
    """Return the page as lines no wider than `width`, but for code, which is left as it is."""
    paint = Paint(color)
    lines: list[str] = []
    for block in _blocks(markdown):
        shown = _render_block(block, paint, max(40, width))
        if lines and shown:
            lines.append("")
        lines += shown
    return "\n".join(lines) + "\n"


def _blocks(markdown: str) -> Iterator[list[str]]:
    """Yield the page's blocks; a fenced block keeps its fences, an item is its own block."""
    block: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        if fence:
            block.append(line)
            if line.strip() == fence:
                yield block
                block, fence = [], ""
            continue
        opening = re.match(r"^\s*(`{3,}|~{3,})", line)
        starts = bool(opening) or line.startswith("#")
        if block and (starts or not line.strip()):
            yield block
            block = []
        if opening:
            fence = opening.group(1)
        if line.strip():
            block.append(line)
        if line.startswith("#"):
            yield block
            block = []
    if block:
        yield block


def _render_block(block: list[str], paint: Paint, width: int) -> list[str]:
    first = block[0]
    if re.match(r"^\s*(```|~~~)", first):
        return _code(block, paint)
    if first.startswith("#"):
        text = first.lstrip("#").strip()
        title = _inline(text, Paint(False))
        line = "=" if first.startswith("# ") else "-"
        return [paint.bold(title), line * display_width(title)]
    if first.lstrip().startswith("|"):
        return _table(block, paint, width)
    if _ITEM.match(first):
        return [line for item in _items(block) for line in _item(item, paint, width)]
    if first.startswith("<!--"):
        return []
    return _wrap(" ".join(line.strip() for line in block), "", "", paint, width)


def _code(block: list[str], paint: Paint) -> list[str]:
    body = block[1:-1] if re.match(r"^\s*(```|~~~)", block[-1]) and len(block) > 1 else block[1:]
    text = textwrap.dedent("\n".join(body)).split("\n")
    return ["    " + _comment_dimmed(line, paint) if line.strip() else "" for line in text]


def _comment_dimmed(line: str, paint: Paint) -> str:
    code, mark, comment = line.partition("  # ")
    if line.lstrip().startswith("#"):
        return paint.dim(line)
    return code + paint.dim(mark + comment)


def _items(block: list[str]) -> Iterator[list[str]]:
    item: list[str] = []
    for line in block:
        if item and _ITEM.match(line):
            yield item
            item = []
        item.append(line)
    yield item


def _item(item: list[str], paint: Paint, width: int) -> list[str]:
    match = _ITEM.match(item[0])
    indent, mark = (match.group(1), match.group(2)) if match else ("", "-")
    words = [item[0][match.end() :] if match else item[0], *(line.strip() for line in item[1:])]
    start = f"  {indent}{mark} "
    return _wrap(" ".join(words), start, " " * len(start), paint, width)


def _wrap(text: str, start: str, hang: str, paint: Paint, width: int) -> list[str]:
    lines = textwrap.wrap(
        _LINK.sub(_link, text),
        width=width,
        initial_indent=start,
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    # Marks are painted after wrapping, since colours take no room; one that a
    # line break cuts in two stays as it was written.
    return [_inline(line, paint) for line in lines]


def _link(match: re.Match[str]) -> str:
    text, target = match.groups()
    return f"{text} ({target})" if target.startswith("http") else text


def _inline(text: str, paint: Paint) -> str:
    parts = re.split(r"(`[^`]+`)", text)
    for number, part in enumerate(parts):
        if not part.startswith("`"):
            part = _STRONG.sub(lambda match: paint.bold(match.group(1)), part)
            parts[number] = _EMPHASIS.sub(lambda match: match.group(1), part)
    return "".join(parts)


def _table(block: list[str], paint: Paint, width: int) -> list[str]:
    rows = [_cells(line) for line in block if not _RULER.match(line)]
    count = max(len(row) for row in rows)
    rows = [row + [""] * (count - len(row)) for row in rows]
    widths = [max(display_width(row[column]) for row in rows) for column in range(count)]
    taken = sum(widths[:-1]) + 2 * count
    room = max(20, width - taken)
    lines = []
    for number, row in enumerate(rows):
        start = "  " + "".join(f"{_padded(row[n], widths[n])}  " for n in range(count - 1))
        last = textwrap.wrap(row[-1], room, break_on_hyphens=False) or [""]
        shown = [(start + last[0]).rstrip()]
        shown += [" " * display_width(start) + more for more in last[1:]]
        lines += [paint.bold(line) for line in shown] if number == 0 else shown
    return lines


def _cells(line: str) -> list[str]:
    inner = line.strip().strip("|").replace(r"\|", "\0")
    cells = [cell.strip().replace("\0", "|") for cell in inner.split("|")]
    return [_inline(cell, Paint(False)) for cell in cells]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))
