"""Notebooks as one program, and text put back into their cells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.static.notebooks import notebook
from zerograd.errors import UnreadableSourceError
from zerograd.static.magics import neutralise
from zerograd.static.source import Source


def read(data: bytes) -> Source:
    return Source.read(data, "a.ipynb")


def test_cells_are_one_program_and_spots_name_cell_and_line() -> None:
    source = read(notebook("import torch\nopt = make()", "for x in data:\n    opt.step()"))
    spot = source.spot(source.tree.body[-1].body[0])  # type: ignore[attr-defined]
    assert (spot.cell, spot.line, spot.column) == (2, 2, 5)
    assert str(spot) == "a.ipynb:cell 2:2:5"
    assert source.lines[source.row(spot) - 1] == "    opt.step()"


def test_only_code_cells_count() -> None:
    shape = json.loads(notebook("a = 1", "b = 2"))
    shape["cells"].insert(0, {"cell_type": "markdown", "source": "# for x in"})
    source = read(json.dumps(shape).encode())
    assert source.spot(source.tree.body[1]).cell == 2


def test_magics_become_pass_and_lines_stay_where_they_are() -> None:
    magic = "!pip install torch \\\n        numpy"
    cell = f"%matplotlib inline\nif ok:\n    {magic}\nopt.step?\nopt.step()"
    source = read(notebook(cell))
    assert source.spot(source.tree.body[-1]).line == 6
    assert source.segment(source.tree.body[-1]) == "opt.step()"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["files = !ls", "t = %timeit -o f()"], ["files = None", "t = None"]),
        (["x = (7", "  % 3)"], ["x = (7", "  % 3)"]),
        (["!ls", "x = (7", "  % 3)"], ["pass", "x = (7", "  % 3)"]),
        (["!ls", 's = """', "%d ! ?", '"""'], ["pass", 's = """', "%d ! ?", '"""']),
        (["!ls", "x = a \\", "  % b"], ["pass", "x = a \\", "  % b"]),
        (["%%bash", "ls"], ["", ""]),
        (["", "%%time", "opt.step()"], ["", "", "opt.step()"]),
        (["%%capture out", "!ls", "f()"], ["", "pass", "f()"]),
        (["?opt", "opt??"], ["pass", "pass"]),
        (["!ls", "f()  # why?", "  # or here?"], ["pass", "f()  # why?", "  # or here?"]),
        (["!ls", "# x = !ls", "x = y == %s"], ["pass", "# x = !ls", "x = y == %s"]),
        (["", "  "], ["", "  "]),
        ([], []),
    ],
)
def test_magics(lines: list[str], expected: list[str]) -> None:
    assert neutralise(lines) == expected


def test_a_broken_cell_is_named_and_the_others_are_read() -> None:
    source = read(notebook("a = 1", "for x in", "opt.step()"))
    assert len(source.problems) == 1
    assert source.problems[0].startswith("a.ipynb:cell 2:1: not checked")
    assert source.spot(source.tree.body[-1]).cell == 3


def test_a_notebook_in_another_language_has_nothing_to_check() -> None:
    assert read(notebook("x <- 1", language="R")).tree.body == []


def test_format_3_is_read() -> None:
    shape = {
        "worksheets": [{"cells": [{"cell_type": "code", "input": ["a = 1\n", "opt.step()"]}]}],
        "nbformat": 3,
    }
    source = read(json.dumps(shape).encode())
    assert source.spot(source.tree.body[-1]).line == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"cells": 3}',
        b'{"nbformat": 4}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"opt.step()\n",
    ],
)
def test_what_is_no_notebook_is_refused_in_a_line(data: bytes) -> None:
    with pytest.raises(UnreadableSourceError) as caught:
        read(data)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("a.ipynb")


@pytest.mark.parametrize(
    "cell", [None, 3, {"cell_type": "code"}, {"cell_type": "code", "source": 7}]
)
def test_strange_cells_are_passed_by(cell: Any) -> None:
    data = json.dumps({"cells": [cell, {"cell_type": "code", "source": "opt.step()"}]}).encode()
    assert len(read(data).tree.body) == 1


def test_a_notebook_without_cells_is_empty() -> None:
    assert read(b'{"cells": []}').tree.body == []


@pytest.mark.parametrize("indent", [None, 1, 2, "\t"])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_text_put_back_changes_no_other_byte(
    indent: int | str | None, end: str, ascii_only: bool
) -> None:
    shape = json.loads(notebook("größe = 1\nb = 2\nc = 3", "d = 4"))
    shape["cells"].insert(0, {"cell_type": "markdown", "source": ['é ] } \\" \u2028']})
    shape["cells"][1]["outputs"] = [{"text": ['"source": ["x"]']}]
    data = (json.dumps(shape, indent=indent, ensure_ascii=ascii_only) + end).encode()
    book = read(data).notebook
    assert book is not None
    assert book.rewritten(list(book.sources)) == data
    shape["cells"][1]["source"] = ["größe = 1\n", "new = 5\n", "b = 2\n", "c = 3"]
    expected = (json.dumps(shape, indent=indent, ensure_ascii=ascii_only) + end).encode()
    assert book.rewritten(["größe = 1\nnew = 5\nb = 2\nc = 3", "d = 4"]) == expected


def test_a_cell_kept_as_one_string_stays_one_string() -> None:
    data = json.dumps({"cells": [{"cell_type": "code", "source": "a = 1\nb = 2"}]}).encode()
    book = read(data).notebook
    assert book is not None
    assert json.loads(book.rewritten(["a = 1\nc = 3\nb = 2"]))["cells"][0]["source"] == (
        "a = 1\nc = 3\nb = 2"
    )


def test_lines_of_a_changed_cell_keep_their_own_escapes() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": ["a = \\u0031\\/\\/2\\n", "b = 2"]}]}'
    book = read(data).notebook
    assert book is not None
    assert book.sources == ["a = 1//2\nb = 2"]
    assert book.rewritten(["a = 1//2\nnew()\nb = 2"]) == data.replace(
        b'"b = 2"', b'"new()\\n", "b = 2"'
    )
