"""Source lines and carets."""

from __future__ import annotations

import json
import os

import pytest

from zerograd.lifecycle.events import Spot
from zerograd.report.excerpt import display_width, excerpt, read_source, visible


def shown(lines, spot, **options):
    return excerpt(spot, lambda path, cell: lines, **options)


def caret_and_line(lines, spot, **options):
    result = shown(lines, spot, **options)
    at = next(number for number, line in enumerate(result) if "^" in line)
    return result[at - 1], result[at]


def test_the_caret_stands_under_the_span():
    line, caret = caret_and_line(["    opt.step()"], Spot("a.py", 1, 5, 1, 15))
    assert caret.index("^") == line.index("opt")
    assert caret.count("^") == len("opt.step()")


def test_tabs_and_wide_characters_keep_the_caret_in_place():
    line, caret = caret_and_line(["\t模型.step()"], Spot("a.py", 1, 5, 1, 11))
    assert line == " 1 |     模型.step()"
    assert caret.index("^") == len(" 1 | ") + 4 + 2 * 2 + 1  # a tab, two wide letters, a dot


def test_a_live_spot_without_columns_underlines_the_statement():
    line, caret = caret_and_line(["    opt.step()  "], Spot("a.py", 1))
    assert caret.index("^") == line.index("opt")
    assert caret.count("^") == len("opt.step()")


def test_a_span_over_lines_is_underlined_to_the_end_of_its_first():
    _, caret = caret_and_line(["opt.step(", "    closure)"], Spot("a.py", 1, 1, 2, 13))
    assert caret.count("^") == len("opt.step(")


def test_a_long_line_is_cut_around_the_caret():
    line = "x = [" + "1, " * 200 + "opt.step()" + ", 1" * 200 + "]"
    column = line.index("opt") + 1
    text, caret = caret_and_line([line], Spot("a.py", 1, column, 1, column + 10), width=60)
    assert display_width(text) <= 60
    assert "opt.step()" in text
    assert text.index("opt.step()") == caret.index("^")


def test_the_loop_around_a_line_is_shown():
    lines = ["for x in y:", "    a()", "    b()", "    c()", "    d()", "    e()"]
    assert any("for x in y" in line for line in shown(lines, Spot("a.py", 6, 5, 6, 8)))


def test_what_follows_the_block_is_not_shown():
    lines = ["for x in y:", "    a()", "if z:", "    b()"]
    assert not any("if z" in line for line in shown(lines, Spot("a.py", 2, 5, 2, 8)))


def test_a_gap_is_marked():
    lines = ["for x in y:", *["    a()"] * 8, "    e()"]
    assert any(line.rstrip().endswith(".. |") for line in shown(lines, Spot("a.py", 10, 5)))


@pytest.mark.parametrize("line", [0, 3, 10**9])
def test_a_line_that_is_not_there_gives_no_excerpt(line):
    assert shown(["a", "b"], Spot("a.py", line)) == []


def test_a_column_past_the_end_does_not_fail():
    assert shown(["ab"], Spot("a.py", 1, 50, 1, 99))


def test_files_are_read_in_their_declared_encoding(tmp_path):
    file = tmp_path / "latin.py"
    file.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\r\ny = 1\x0c\n")
    assert read_source(str(file), None)[1:3] == ("x = 'é'", "y = 1\x0c")


def test_cells_are_counted_among_code_cells(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": "# title"},
        {"cell_type": "code", "source": ["a = 1\n", "b = 2"]},
        {"cell_type": "code", "source": "c = 3"},
    ]
    file = tmp_path / "n.ipynb"
    file.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert read_source(str(file), 1) == ("a = 1", "b = 2")
    assert read_source(str(file), 2) == ("c = 3",)
    assert read_source(str(file), 3) == ()


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"# coding: nonsense\n", b"[1, 2]", b"{", b""]
)
@pytest.mark.parametrize("cell", [None, 1])
def test_unreadable_source_is_no_error(tmp_path, content, cell):
    file = tmp_path / "bad.py"
    file.write_bytes(content)
    read_source(str(file), cell)
    assert read_source(str(tmp_path / "absent.py"), cell) == ()
    assert read_source(str(tmp_path), cell) == ()
    assert read_source("nul\0name", cell) == ()


def test_undecodable_paths_become_visible():
    assert visible(os.fsdecode(b"a\xff.py")) == r"a\udcff.py"
