"""Edits of single statements that keep every other byte: insert, move, replace.

Rows are those of `Source.text`, which for a notebook is the joined program.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from zerograd.errors import UnreadableSourceError
from zerograd.lifecycle.findings import Edit
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.fixing.held import is_held
from zerograd.static.source import Source

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class CannotEdit(Exception):
    """The layout of the code leaves no safe way to do this edit."""


class Layout:
    """Where the statements of a source stand, and how to change one of them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._place: dict[ast.AST, tuple[list[ast.stmt], ast.AST]] = {}  # block and parent
        found = _LINE_END.search(source.text)
        self.newline = found.group() if found else "\n"
        self._walk(source.tree)

    def _walk(self, top: ast.AST) -> None:
        waiting = [top]
        while waiting:
            node = waiting.pop()
            for name in _BLOCKS:
                block = getattr(node, name, None)
                if not isinstance(block, list):
                    continue
                for inner in block:
                    if isinstance(inner, ast.stmt):
                        self._place[inner] = (block, node)
                    waiting.append(inner)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements among which `statement` stands."""
        return self._place[statement][0]

    def parent(self, statement: ast.stmt) -> ast.AST:
        return self._place[statement][1]

    def after(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements that follow in the same block."""
        block = self.block(statement)
        return block[block.index(statement) + 1 :]

    def at(self, row: int, column: int) -> ast.stmt | None:
        """Return the innermost statement over a place (1-based)."""
        best: ast.stmt | None = None
        for statement in self._place:
            assert isinstance(statement, ast.stmt)
            start = (statement.lineno, self._column(statement.lineno, statement.col_offset))
            end = (statement.end_lineno or 0, self._end_column(statement))
            if start <= (row, column) <= end and (
                best is None or (statement.lineno, statement.col_offset) >= _start(best)
            ):
                best = statement
        return best

    def text(self, node: ast.AST) -> str:
        return self.source.segment(node)

    # -- edits

    def insert_after(self, statement: ast.stmt, code: str) -> list[Edit]:
        """Put `code` behind a statement: on its own line where the statement has its own."""
        row = statement.end_lineno or statement.lineno
        if self._has_own_lines(statement):
            line = f"{self.newline}{self._indent(statement)}{code}"
            return [self._insert(row, self._length(row) + 1, line)]
        if hasattr(statement, "body"):
            raise CannotEdit
        return [self._insert(row, self._end_column(statement), f"; {code}")]

    def insert_before(self, statement: ast.stmt, code: str) -> list[Edit]:
        row = statement.lineno
        if self._starts_line(statement):
            return [self._insert(row, 1, f"{self._indent(statement)}{code}{self.newline}")]
        if hasattr(statement, "body"):
            raise CannotEdit
        column = self._column(row, statement.col_offset)
        return [self._insert(row, column, f"{code}; ")]

    def move_after(self, statement: ast.stmt, anchor: ast.stmt) -> list[Edit]:
        """Move a statement behind another one, with the comment at its line's end."""
        if is_held(statement, anchor, self._place):
            raise CannotEdit
        first = self._first_of_line(anchor)
        if self._has_own_lines(statement) and first is not None and self._ends_line(anchor):
            row = anchor.end_lineno or anchor.lineno
            lines = self._reindented(statement, self._indent(first))
            content = "".join(f"{self.newline}{line}" for line in lines)
            insert = [self._insert(row, self._length(row) + 1, content)]
            return [*insert, *self.remove(statement, with_comment=True)]
        insert = self.insert_after(anchor, self._one_line(statement))
        return [*insert, *self.remove(statement)]

    def move_before(self, statement: ast.stmt, anchor: ast.stmt) -> list[Edit]:
        if is_held(statement, anchor, self._place):
            raise CannotEdit
        if self._has_own_lines(statement) and self._starts_line(anchor):
            lines = self._reindented(statement, self._indent(anchor))
            content = "".join(f"{line}{self.newline}" for line in lines)
            insert = [self._insert(anchor.lineno, 1, content)]
            return [*insert, *self.remove(statement, with_comment=True)]
        insert = self.insert_before(anchor, self._one_line(statement))
        return [*insert, *self.remove(statement)]

    def replace(self, node: ast.AST, code: str) -> list[Edit]:
        row: int = node.lineno  # type: ignore[attr-defined]
        column = self._column(row, node.col_offset)  # type: ignore[attr-defined]
        end_row: int = node.end_lineno  # type: ignore[attr-defined]
        end_column = self._column(end_row, node.end_col_offset)  # type: ignore[attr-defined]
        return [Edit(row, column, end_row, end_column, code)]

    def guard(self, statement: ast.stmt, condition: str) -> list[Edit]:
        """Put a statement of its own lines under an `if`."""
        if not self._has_own_lines(statement) or statement.lineno != statement.end_lineno:
            raise CannotEdit
        indent = self._indent(statement)
        content = f"{indent}if {condition}:{self.newline}{self._unit(statement)}"
        return [self._insert(statement.lineno, 1, content)]

    def remove(self, statement: ast.stmt, *, with_comment: bool = False) -> list[Edit]:
        """Take a statement out; a block that would be empty gets a `pass`.

        Args:
            with_comment: the comment at its line's end has gone where the statement went.
        """
        block = self.block(statement)
        if len(block) == 1:
            [edit] = self.replace(statement, "pass")
            end = self._length(edit.end_row) + 1 if with_comment else edit.end_column
            return [replace(edit, end_column=end)]
        if self._has_own_lines(statement):
            return [self._without_rows(statement.lineno, statement.end_lineno or 0)]
        at = block.index(statement)
        if at + 1 < len(block) and block[at + 1].lineno == statement.end_lineno:
            after = block[at + 1]  # `a; b`: up to b
            return [
                Edit(
                    statement.lineno,
                    self._column(statement.lineno, statement.col_offset),
                    after.lineno,
                    self._column(after.lineno, after.col_offset),
                    "",
                )
            ]
        if at and block[at - 1].end_lineno == statement.lineno:
            before = block[at - 1]  # `a; b`: from the end of a
            end_row = statement.end_lineno or statement.lineno
            return [
                Edit(
                    statement.lineno,
                    self._end_column(before),
                    end_row,
                    self._end_column(statement),
                    "",
                )
            ]
        raise CannotEdit

    def remove_comment(self, row: int, column: int) -> list[Edit]:
        """Take out the comment that runs from `column` to the end of its line."""
        line = self.source.lines[row - 1]
        kept = line[: column - 1].rstrip()
        if not kept:
            return [self._without_rows(row, row)]
        return [Edit(row, len(kept) + 1, row, len(line) + 1, "")]

    # -- layout

    def _starts_line(self, statement: ast.stmt) -> bool:
        row = statement.lineno
        head = self.source.lines[row - 1][: self._column(row, statement.col_offset) - 1]
        goes_on = row > 1 and self.source.lines[row - 2].rstrip().endswith("\\")
        return not head.strip() and not goes_on

    def _ends_line(self, statement: ast.stmt) -> bool:
        row = statement.end_lineno or statement.lineno
        rest = self.source.lines[row - 1][self._end_column(statement) - 1 :].strip()
        return not rest or rest.startswith("#")

    def _has_own_lines(self, statement: ast.stmt) -> bool:
        return self._starts_line(statement) and self._ends_line(statement)

    def _indent(self, statement: ast.stmt) -> str:
        row = statement.lineno
        head = self.source.lines[row - 1][: self._column(row, statement.col_offset) - 1]
        if head.strip():
            raise CannotEdit
        return head

    def _first_of_line(self, statement: ast.stmt) -> ast.stmt | None:
        """Return the statement of the same block that begins the line: `a` for the b of `a; b`."""
        for each in self.block(statement):
            if each.lineno == statement.lineno:
                return each if self._starts_line(each) else None
        return None

    def _one_line(self, statement: ast.stmt) -> str:
        """Return a statement to be put among others on their line; a comment cannot go there."""
        if hasattr(statement, "body") or statement.lineno != statement.end_lineno:
            raise CannotEdit
        row = statement.lineno
        rest = self.source.lines[row - 1][self._end_column(statement) - 1 :]
        if self._has_own_lines(statement) and rest.strip():
            raise CannotEdit
        return self.text(statement)

    def _reindented(self, statement: ast.stmt, indent: str) -> list[str]:
        """Return the lines of a statement, moved to another depth."""
        old = self._indent(statement)
        lines = self.source.lines[statement.lineno - 1 : statement.end_lineno]
        if old == indent:
            return list(lines)
        if len(lines) > 1 and any(
            isinstance(node, (ast.Constant, ast.JoinedStr)) and node.lineno != node.end_lineno
            for node in parts_below(statement)
        ):
            raise CannotEdit  # the inside of a string must stay where it is
        moved = []
        for line in lines:
            if line.strip() and not line.startswith(old):
                raise CannotEdit
            moved.append(indent + line[len(old) :] if line.strip() else line)
        return moved

    def _unit(self, statement: ast.stmt) -> str:
        """Return one level of indentation as this file writes it."""
        indent = self._indent(statement)
        parent = self.parent(statement)
        if isinstance(parent, ast.stmt) and self._starts_line(parent):
            outer = self._indent(parent)
            if indent.startswith(outer) and indent != outer:
                return indent[len(outer) :]
        for other, (_, above) in self._place.items():
            if isinstance(above, ast.stmt) and isinstance(other, ast.stmt):
                row, outer_row = other.lineno, above.lineno
                line, outer_line = self.source.lines[row - 1], self.source.lines[outer_row - 1]
                inner = line[: len(line) - len(line.lstrip())]
                outer = outer_line[: len(outer_line) - len(outer_line.lstrip())]
                if inner.startswith(outer) and inner != outer:
                    return inner[len(outer) :]
        return "    "

    def _without_rows(self, first: int, last: int) -> Edit:
        """Return the edit that takes out whole rows and one line end."""
        if last < len(self.source.lines) and self._same_cell(last, last + 1):
            return Edit(first, 1, last + 1, 1, "")
        if first > 1 and self._same_cell(first - 1, first):
            return Edit(first - 1, self._length(first - 1) + 1, last, self._length(last) + 1, "")
        return Edit(first, 1, last, self._length(last) + 1, "")

    def _same_cell(self, one: int, other: int) -> bool:
        notebook = self.source.notebook
        return notebook is None or notebook.place(one)[0] == notebook.place(other)[0]

    def _insert(self, row: int, column: int, content: str) -> Edit:
        return Edit(row, column, row, column, content)

    def _length(self, row: int) -> int:
        return len(self.source.lines[row - 1])

    def _column(self, row: int, offset: int) -> int:
        return self.source.column(row, offset)

    def _end_column(self, statement: ast.stmt) -> int:
        row = statement.end_lineno or statement.lineno
        return self._column(row, statement.end_col_offset or 0)


def _start(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def apply_edits(source: Source, edits: Sequence[Edit]) -> Source:
    """Return the source with the edits made, parsed anew.

    Raises UnreadableSourceError where the result does not parse, CannotEdit where
    edits overlap or touch what is not Python (a notebook's magics).
    """
    if source.notebook is None:
        text = spliced(source.text, edits)
        return Source.read(encoded(text, source.encoding), source.path)
    sources = list(source.notebook.sources)
    for cell, inner in in_cells(source, edits).items():
        sources[cell - 1] = spliced(sources[cell - 1], inner)
    changed = Source.read(source.notebook.rewritten(sources), source.path)
    if len(changed.problems) > len(source.problems):
        raise UnreadableSourceError(changed.problems[-1])
    return changed


def in_cells(source: Source, edits: Sequence[Edit]) -> dict[int, list[Edit]]:
    """Return the edits of a notebook by cell, their rows counted within it."""
    notebook = source.notebook
    assert notebook is not None
    cells: dict[int, list[Edit]] = {}
    for edit in edits:
        cell, row = notebook.place(edit.row)
        end_cell, end_row = notebook.place(edit.end_row)
        written = notebook.lines(cell)
        if end_cell != cell or any(
            written[line - 1] != source.lines[notebook.row(cell, line) - 1]
            for line in range(row, end_row + 1)
        ):
            raise CannotEdit
        cells.setdefault(cell, []).append(
            Edit(row, edit.column, end_row, edit.end_column, edit.content)
        )
    return cells


def spliced(text: str, edits: Sequence[Edit]) -> str:
    """Return `text` with the edits made."""
    pieces: list[str] = []
    done = 0
    for start, end, content in _places(text, edits):
        pieces += [text[done:start], content]
        done = end
    return "".join([*pieces, text[done:]])


class Moves:
    """Tells a place in a text from before some edits again after them, by its offset before.

    >>> moves = Moves("a\\nb\\n", [Edit(1, 2, 1, 2, "\\nnew")])
    >>> moves.before(2, 1), moves.after(3, 1), moves.after(2, 1)
    (2, 2, None)
    """

    def __init__(self, text: str, edits: Sequence[Edit]) -> None:
        self._places = _places(text, edits)
        self._before = _line_starts(text)
        self._after = _line_starts(spliced(text, edits))

    def before(self, row: int, column: int) -> int | None:
        """Return the offset of a place in the old text, None if the edits take it away."""
        at = self._before[row - 1] + column - 1
        for start, end, content in self._places:
            if start <= at < end:
                return start if _is_rewritten(content) else None
        return at

    def after(self, row: int, column: int) -> int | None:
        """Return where a place of the new text stood in the old one, None if it is new."""
        at = self._after[row - 1] + column - 1
        for start, end, content in self._places:
            if at < start:
                break
            if at < start + len(content):
                return start if start < end and _is_rewritten(content) else None
            at += end - start - len(content)
        return at


def _is_rewritten(content: str) -> bool:
    """Whether an edit puts one expression or statement in the place of another."""
    return bool(content) and _LINE_END.search(content) is None


def _places(text: str, edits: Sequence[Edit]) -> list[tuple[int, int, str]]:
    """Return the edits in order, as offsets; CannotEdit where they overlap."""
    starts = _line_starts(text)
    places = sorted(
        (
            starts[edit.row - 1] + edit.column - 1,
            starts[edit.end_row - 1] + edit.end_column - 1,
            edit.content,
        )
        for edit in edits
    )
    if any(one[1] > other[0] for one, other in pairwise(places)):
        raise CannotEdit
    return places


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in _LINE_END.finditer(text))]


def encoded(text: str, encoding: str) -> bytes:
    return text.encode(encoding)
