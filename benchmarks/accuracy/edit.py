"""Edit source by whole lines, so that a mutant reads like something a person typed.

Edits are collected against the line numbers of the original and applied at once; `where`
then tells where an original line, or an inserted one, stands in the result.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


class CannotEdit(Exception):
    """This statement does not stand alone on its lines, so no clean edit exists."""


@dataclass(frozen=True, slots=True)
class Place:
    """The block a statement stands in, and the statement that owns the block."""

    block: list[ast.stmt]
    index: int
    owner: ast.AST


def places(tree: ast.AST) -> dict[ast.stmt, Place]:
    """Map each statement of the tree to its place."""
    found: dict[ast.stmt, Place] = {}
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                for index, statement in enumerate(value):
                    found[statement] = Place(value, index, node)
    return found


class Editor:
    """One set of edits on one source text."""

    def __init__(self, text: str, at: dict[ast.stmt, Place]) -> None:
        self._lines = text.split("\n")
        self._at = at
        self._before: dict[int, list[tuple[str, str]]] = {}
        self._after: dict[int, list[tuple[str, str]]] = {}
        self._new: dict[int, str] = {}
        self._deleted: dict[ast.stmt, None] = {}
        self._where: dict[int | str, int] = {}

    def line(self, number: int) -> str:
        return self._new.get(number, self._lines[number - 1])

    def indent(self, statement: ast.stmt) -> str:
        """Return the white space before a statement that begins its line."""
        prefix = self._lines[statement.lineno - 1][: statement.col_offset]
        if prefix.strip():
            raise CannotEdit("it shares its line with another statement")
        return prefix

    def _check_lines(self, statement: ast.stmt) -> None:
        """Refuse a statement that has not its lines for itself."""
        self.indent(statement)
        last = self._lines[(statement.end_lineno or statement.lineno) - 1]
        rest = last.encode()[statement.end_col_offset or 0 :].decode().strip()
        if rest and not rest.startswith("#"):
            raise CannotEdit("it shares its line with another statement")

    def text(self, statement: ast.stmt) -> list[str]:
        """Return the lines of a statement without its indentation."""
        width = len(self.indent(statement))
        last = statement.end_lineno or statement.lineno
        return [
            line[width:] if not line[:width].strip() else line.lstrip()
            for line in self._lines[statement.lineno - 1 : last]
        ]

    def delete(self, statement: ast.stmt) -> None:
        self._check_lines(statement)
        self._deleted[statement] = None

    def insert_before(
        self, statement: ast.stmt, lines: list[str], mark: str = "", inner: str = ""
    ) -> None:
        indent = self.indent(statement) + inner
        first = min(
            [statement.lineno] + [d.lineno for d in getattr(statement, "decorator_list", [])]
        )
        rows = [(mark if n == 0 else "", indent + line) for n, line in enumerate(lines)]
        self._before.setdefault(first, []).extend(rows)

    def insert_after(self, statement: ast.stmt, lines: list[str], mark: str = "") -> None:
        indent = self.indent(statement)
        rows = [(mark if n == 0 else "", indent + line) for n, line in enumerate(lines)]
        last = statement.end_lineno or statement.lineno
        self._after.setdefault(last, [])[:0] = rows

    def replace_span(self, node: ast.expr | ast.stmt, old: str, new: str) -> None:
        """Replace `old`, which the node's first line must hold, by `new`."""
        line = self.line(node.lineno)
        if old not in line:
            raise CannotEdit("it is spread over several lines")
        self._new[node.lineno] = line.replace(old, new, 1)

    def wrap(self, statements: list[ast.stmt], header: str) -> None:
        """Put neighbouring statements under `header`, indented by one level."""
        indent = self.indent(statements[0])
        level = "\t" if "\t" in indent else "    "
        self._before.setdefault(statements[0].lineno, []).append(("", indent + header))
        for statement in statements:
            self._check_lines(statement)
            for number in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                if self._lines[number - 1].strip():
                    self._new[number] = level + self.line(number)

    def apply(self) -> str:
        """Return the edited text; a block that lost all its statements gets a `pass`."""
        gone: dict[int, str | None] = {}
        for statement in self._deleted:
            for number in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                gone[number] = None
            block = self._at[statement].block
            filled = self._before.get(statement.lineno) or self._after.get(
                statement.end_lineno or 0
            )
            if all(other in self._deleted for other in block) and not filled:
                gone[block[0].lineno] = self.indent(block[0]) + "pass"
        out: list[str] = []
        for number, line in enumerate(self._lines, 1):
            self._put(out, self._before.get(number, []))
            if number not in gone:
                out.append(self._new.get(number, line))
                self._where[number] = len(out)
            else:
                substitute = gone[number]
                if substitute is not None:
                    out.append(substitute)
            self._put(out, self._after.get(number, []))
        return "\n".join(out)

    def _put(self, out: list[str], rows: list[tuple[str, str]]) -> None:
        for mark, line in rows:
            out.append(line)
            if mark:
                self._where[mark] = len(out)

    def where(self, line_or_mark: int | str) -> int | None:
        """Return the new line of an original line or a mark, after `apply`."""
        return self._where.get(line_or_mark)
