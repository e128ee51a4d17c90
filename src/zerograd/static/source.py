"""One file as the checker sees it: its text, its tree, and where a node stands.

A notebook is one program: its code cells joined, so that a loop in cell 5 knows
the optimizer of cell 2. Spots are given by cell and line.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING

from zerograd.errors import UnreadableSourceError
from zerograd.lifecycle.events import Spot
from zerograd.static.depth import with_room

if TYPE_CHECKING:
    from zerograd.static.notebook import Notebook

UTF8_BOM = b"\xef\xbb\xbf"

# what Python 3's parser says of Python 2
PYTHON_2 = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
)


class Source:
    """A parsed file.

    Attributes:
        path: as it is to be shown.
        text: the program with its own line ends; of a notebook, the joined cells.
        tree: the syntax tree of `text`.
        encoding: what the bytes were decoded with.
        notebook: the cells, or None for a plain file.
        problems: parts that could not be checked (a broken cell), a line each.
        cut_out: it stood inside of something: its first line is indented.
    """

    __slots__ = ("_lines", "cut_out", "encoding", "notebook", "path", "problems", "text", "tree")

    def __init__(
        self,
        path: str,
        text: str,
        tree: ast.Module,
        *,
        encoding: str = "utf-8",
        notebook: Notebook | None = None,
        problems: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.text = text
        self.tree = tree
        self.encoding = encoding
        self.notebook = notebook
        self.problems = problems
        indent = text[: len(text) - len(text.lstrip())].rpartition("\n")[2]
        self.cut_out = notebook is None and indent[:1] in (" ", "\t") and not text.isspace()
        self._lines: list[str] | None = None

    def __repr__(self) -> str:
        return f"Source({self.path!r})"

    @classmethod
    def parse(cls, text: str, path: str = "<string>") -> Source:
        """Return `text` parsed as Python, or raise UnreadableSourceError.

        >>> Source.parse("opt.step()", "a.py").lines
        ['opt.step()']
        """
        text = text.removeprefix("\ufeff")
        return cls(path, text, parse_tree(text, path))

    @classmethod
    def read(cls, data: bytes, path: str) -> Source:
        """Return the bytes of a file parsed as Python or, by the name, as a notebook."""
        if path.endswith(".ipynb"):
            from zerograd.static.notebook import Notebook

            notebook = Notebook.read(data, path)
            text, tree, problems = notebook.program(path)
            return cls(path, text, tree, notebook=notebook, problems=problems)
        text, encoding = decode(data, path)
        return cls(path, text, parse_tree(text, path), encoding=encoding)

    @property
    def lines(self) -> list[str]:
        """The lines without their ends, numbered as the tree numbers them (from 1)."""
        if self._lines is None:
            self._lines = split_lines(self.text)
        return self._lines

    def spot(self, node: ast.AST) -> Spot:
        """Return where `node` stands, as editors count: lines and columns from 1."""
        row: int = node.lineno  # type: ignore[attr-defined]
        end_row: int = node.end_lineno  # type: ignore[attr-defined]
        column = self.column(row, node.col_offset)  # type: ignore[attr-defined]
        end_column = self.column(end_row, node.end_col_offset)  # type: ignore[attr-defined]
        if self.notebook is None:
            return Spot(self.path, row, column, end_row, end_column)
        cell, line = self.notebook.place(row)
        return Spot(self.path, line, column, line + end_row - row, end_column, cell)

    def data(self) -> bytes:
        """Return the file's bytes."""
        if self.notebook is not None:
            return self.notebook.data
        return self.text.encode(self.encoding)

    def row(self, spot: Spot) -> int:
        """Return the line of `spot` in `text`, which for a notebook is the joined program."""
        if self.notebook is None or spot.cell is None:
            return spot.line
        return self.notebook.row(spot.cell, spot.line)

    def segment(self, node: ast.AST) -> str:
        """Return the source of `node` on one line.

        >>> source = Source.parse("f(a,\\n  b)", "a.py")
        >>> source.segment(source.tree.body[0])
        'f(a, b)'
        """
        row: int = node.lineno  # type: ignore[attr-defined]
        if row != node.end_lineno:  # type: ignore[attr-defined]
            return ast.unparse(node)  # lines may end in comments, which must not be joined
        line = self.lines[row - 1]
        start: int = node.col_offset  # type: ignore[attr-defined]
        end: int = node.end_col_offset  # type: ignore[attr-defined]
        if line.isascii():
            return line[start:end]
        return line.encode()[start:end].decode()

    def column(self, row: int, offset: int) -> int:
        """Return the 1-based column in characters for the tree's offset in UTF-8 bytes."""
        line = self.lines[row - 1]
        if line.isascii():
            return offset + 1
        return len(line.encode()[:offset].decode(errors="replace")) + 1


def shown_path(path: str) -> str:
    """Return a path as findings show it: from the current folder if it lies below, else whole."""
    inside = os.path.relpath(path)
    return os.path.abspath(path) if inside.startswith("..") else inside


def split_lines(text: str) -> list[str]:
    """Split where Python's parser does, which is less often than `str.splitlines`."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def decode(data: bytes, path: str) -> tuple[str, str]:
    """Return the text of a source file and its encoding, by its BOM or coding comment."""
    if data.startswith(UTF8_BOM):
        data, encoding = data[3:], "utf-8-sig"
    else:
        encoding = _declared(data) or "utf-8"
    try:
        return data.decode("utf-8" if encoding == "utf-8-sig" else encoding), encoding
    except LookupError:
        raise UnreadableSourceError(
            f"{path}: not checked, its coding comment names an unknown encoding ({encoding})"
        ) from None
    except UnicodeError as cause:
        where = f":{data[: cause.start].count(10) + 1}" if hasattr(cause, "start") else ""
        raise UnreadableSourceError(
            f"{path}{where}: not checked, the bytes are not {encoding}"
        ) from None


def _declared(data: bytes) -> str | None:
    """Return the encoding named by a coding comment in the first two lines."""
    head = data[:400].replace(b"\r", b"\n").split(b"\n", 2)[:2]
    for line in head:
        stripped = line.lstrip(b" \t\f")
        if not stripped.startswith(b"#"):
            if stripped:
                return None
            continue
        _, found, rest = stripped.partition(b"coding")
        if found and rest[:1] in (b":", b"="):
            name = rest[1:].lstrip(b" \t")
            end = next(
                (n for n, char in enumerate(name) if not (chr(char).isalnum() or char in b"-_.")),
                len(name),
            )
            if end:
                declared = name[:end].decode("ascii", "replace").lower()
                # future_fstrings and its like rewrite new syntax for an old Python: it is UTF-8.
                return "utf-8" if declared.startswith("future") else declared
    return None


_PRINTS = re.compile(r"(?m)^\s*print\s+[^\s(=]")
_RAISES = re.compile(r"raise\s+[\w.]+\s*,")
_OLD_ASYNC = re.compile(r"\basync(?=\s*=[^=])")


def parse_tree(text: str, path: str) -> ast.Module:
    """Return the tree of `text`, or raise UnreadableSourceError with one clear line."""
    try:
        return with_room(lambda: _compile(text))
    except SyntaxError as cause:
        if isinstance(cause, IndentationError):
            from zerograd.static.fragments import parse_fragment

            cut_out = parse_fragment(text.replace("\r\n", "\n").replace("\r", "\n"))
            if cut_out is not None:
                return cut_out
        # `x.cuda(async=True)` was right before Python 3.7 made a keyword of it.
        renamed = _OLD_ASYNC.sub("ASYNC", text)
        if renamed != text:
            return parse_tree(renamed, path)
        # A script for IPython, or written out of a notebook.
        from zerograd.static.magics import neutralise

        harmless = "\n".join(neutralise(split_lines(text)))
        if harmless != text:
            return parse_tree(harmless, path)
        if _is_python_2(cause, text):
            from zerograd.static.python2 import rewritten

            newer = rewritten(text)
            if newer is not None and newer != text:
                with contextlib.suppress(UnreadableSourceError):
                    return parse_tree(newer, path)
        raise UnreadableSourceError(
            f"{path}{f':{cause.lineno}' if cause.lineno else ''}: not checked, {_why(cause, text)}"
        ) from None
    except (RecursionError, MemoryError):
        raise UnreadableSourceError(
            f"{path}: not checked, it is nested too deeply for Python's parser"
        ) from None
    except ValueError as cause:  # null bytes, before Python 3.12; lone surrogates
        raise UnreadableSourceError(f"{path}: not checked, {cause}") from None


def _compile(text: str) -> ast.Module:
    with warnings.catch_warnings():
        # The user's invalid escapes are not ours to tell, and must not be errors under -W error.
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _is_python_2(cause: SyntaxError, text: str) -> bool:
    line = (cause.text or "").lstrip()
    signs = any(sign in (cause.msg or "") for sign in PYTHON_2)
    if isinstance(cause, TabError):  # Python 2 took a tab for eight
        return _PRINTS.search(text) is not None
    return signs or line.startswith(("print ", "exec ")) or _RAISES.match(line) is not None


def _why(cause: SyntaxError, text: str) -> str:
    message = cause.msg or "invalid syntax"
    if "null bytes" in message:
        return "the source contains null bytes"
    if _is_python_2(cause, text):
        return "it is written for Python 2"
    # a newer Python may: the user should see which one reads
    return f"Python {sys.version_info[0]}.{sys.version_info[1]} cannot parse it ({message})"
