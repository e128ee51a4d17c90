"""A Jupyter notebook as one Python program, and edits put back into its cells."""

from __future__ import annotations

import ast
import json
from bisect import bisect_right
from typing import Any

from zerograd.errors import UnreadableSourceError
from zerograd.static.magics import neutralise
from zerograd.static.source import parse_tree, split_lines


class Notebook:
    """The code cells of a notebook, in order, numbered from 1.

    `sources` holds each cell as the user wrote it, magics included.
    """

    __slots__ = ("_starts", "data", "sources")

    def __init__(self, data: bytes, sources: list[str]) -> None:
        self.data = data
        self.sources = sources
        self._starts: list[int] = []  # the row of each cell's first line in the joined program

    @classmethod
    def read(cls, data: bytes, path: str) -> Notebook:
        """Return the code cells of the notebook in `data`, of format 3 or 4."""
        cells = _code_cells(_load(data, path), path)
        return cls(data, [_text(cell) for cell in cells])

    def program(self, path: str) -> tuple[str, ast.Module, tuple[str, ...]]:
        """Return the joined text, its tree, and a line for each cell that does not parse."""
        bodies = [neutralise(split_lines(source)) for source in self.sources]
        try:
            return self._joined(bodies, path)
        except UnreadableSourceError:
            problems = []
            for number, body in enumerate(bodies, 1):
                try:
                    parse_tree("\n".join(body), f"{path}:cell {number}")
                except UnreadableSourceError as problem:
                    problems.append(str(problem))
                    bodies[number - 1] = [""] * len(body)
            text, tree, _ = self._joined(bodies, path)
            return text, tree, tuple(problems)

    def place(self, row: int) -> tuple[int, int]:
        """Return (cell, line in that cell) of a row of the joined program."""
        cell = max(bisect_right(self._starts, row), 1)
        return cell, row - self._starts[cell - 1] + 1

    def row(self, cell: int, line: int) -> int:
        """Return the row in the joined program of a line of a cell."""
        return self._starts[cell - 1] + line - 1

    def lines(self, cell: int) -> list[str]:
        """Return the lines of a cell as the user wrote them."""
        return split_lines(self.sources[cell - 1])

    def rewritten(self, sources: list[str]) -> bytes:
        """Return the notebook with the code cells' text replaced, its formatting kept."""
        from zerograd.static.notebook_text import put_back

        changed = {
            number: text for number, text in enumerate(sources) if text != self.sources[number]
        }
        return put_back(self.data, changed)

    def _joined(
        self, bodies: list[list[str]], path: str
    ) -> tuple[str, ast.Module, tuple[str, ...]]:
        self._starts = []
        lines: list[str] = []
        for body in bodies:
            self._starts.append(len(lines) + 1)
            lines.extend(body)
        if not self._starts:
            self._starts.append(1)
        text = "\n".join(lines) + "\n" if lines else ""
        return text, parse_tree(text, path), ()


def _load(data: bytes, path: str) -> dict[str, Any]:
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError) as cause:  # bad JSON, bad encoding
        line = getattr(cause, "lineno", None)
        where = f":{line}" if line else ""
        raise UnreadableSourceError(f"{path}{where}: not checked, it is no notebook") from None
    if not isinstance(notebook, dict):
        raise UnreadableSourceError(f"{path}: not checked, it is no notebook")
    return notebook


def _code_cells(notebook: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """Return the code cells, or none where the notebook's language is not Python."""
    cells = notebook.get("cells")
    if cells is None:  # format 3 and older keep them in worksheets
        sheets = notebook.get("worksheets")
        if not isinstance(sheets, list):
            raise UnreadableSourceError(f"{path}: not checked, the notebook has no cells")
        cells = [
            cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells") or ()
        ]
    if not isinstance(cells, list):
        raise UnreadableSourceError(f"{path}: not checked, the notebook has no cells")
    if not _is_python(notebook.get("metadata")):
        return []
    return [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]


def _is_python(metadata: Any) -> bool:
    """Is the kernel's language Python, or not said?"""
    if not isinstance(metadata, dict):
        return True
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(key)
        if isinstance(part, dict) and isinstance(part.get(name), str):
            return bool(part[name].lower().startswith(("python", "ipython")))
    return True


def _text(cell: dict[str, Any]) -> str:
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""
