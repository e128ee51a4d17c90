"""One file as the checker sees it: bytes to text, tree and places."""

from __future__ import annotations

import ast
import sys
import warnings

import pytest

import zerograd
from zerograd.errors import UnreadableSourceError
from zerograd.static.source import Source, decode, split_lines

STEP = "opt.step()"
PYTHON = "Python {}.{}".format(*sys.version_info)


def read(data: bytes, path: str = "a.py") -> Source:
    return Source.read(data, path)


def refusal(data: bytes, path: str = "a.py") -> str:
    with pytest.raises(UnreadableSourceError) as caught:
        read(data, path)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_spot_counts_lines_and_columns_from_one() -> None:
    source = Source.parse("if x:\n    opt.step()\n", "a.py")
    spot = source.spot(source.tree.body[0].body[0])  # type: ignore[attr-defined]
    assert (spot.line, spot.column, spot.end_line, spot.end_column) == (2, 5, 2, 15)


def test_columns_count_characters_not_bytes() -> None:
    source = Source.parse("größe = 'naïve'; opt.step()\n", "a.py")
    spot = source.spot(source.tree.body[1])
    assert spot.column == 18
    assert source.segment(source.tree.body[1]) == STEP


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_lines_are_numbered_as_python_numbers_them(ends: str) -> None:
    text = ends.join(["a = 1", "b = '\x0c\u2028'", "opt.step()", ""])
    source = read(text.encode())
    node = source.tree.body[-1]
    assert node.lineno == 3
    assert source.lines[node.lineno - 1] == STEP
    assert source.text == text  # its own line ends are kept


def test_a_form_feed_ends_no_line() -> None:
    assert split_lines("a\x0cb\x0bc\nd") == ["a\x0cb\x0bc", "d"]


def test_a_segment_of_several_lines_comes_on_one_without_comments() -> None:
    source = Source.parse("clip(\n    net.parameters(),  # all\n    1.0,\n)\n", "a.py")
    assert source.segment(source.tree.body[0]) == "clip(net.parameters(), 1.0)"


def test_a_byte_order_mark_is_read_and_kept_for_writing() -> None:
    data = b"\xef\xbb\xbfopt.step()\n"
    source = read(data)
    assert source.spot(source.tree.body[0]).column == 1
    assert source.data() == data


def test_a_coding_comment_is_obeyed_and_kept_for_writing() -> None:
    data = "# -*- coding: latin-1 -*-\n# gr\u00fcn\nopt.step()\n".encode("latin-1")
    source = read(data)
    assert source.lines[1] == "# grün"
    assert source.data() == data


def test_a_coding_word_inside_code_is_no_coding_comment() -> None:
    text, encoding = decode(b"encoding = 'latin-1'\n# coding: latin-1\n", "a.py")
    assert encoding == "utf-8"
    assert text.startswith("encoding")


def test_bytes_that_are_not_utf8_are_refused_with_the_line() -> None:
    assert refusal(b"a = 1\n# gr\xfcn\n") == "a.py:2: not checked, the bytes are not utf-8"


def test_a_codec_that_only_rewrites_new_syntax_is_utf8() -> None:
    assert decode(b"# -*- coding: future_fstrings -*-\nx\n", "a.py")[1] == "utf-8"


def test_an_unknown_encoding_is_refused() -> None:
    assert "unknown encoding (klingon)" in refusal(b"# coding: klingon\n")


def test_an_encoding_that_is_no_text_encoding_is_refused() -> None:
    assert "not checked" in refusal(b"# coding: hex\nzz\n")


def test_utf16_is_refused() -> None:
    assert "not checked" in refusal("opt.step()\n".encode("utf-16"))


def test_invalid_syntax_is_refused_with_the_line() -> None:
    assert refusal(b"a = 1\nfor x in\n").startswith(
        f"a.py:2: not checked, {PYTHON} cannot parse it ("
    )


@pytest.mark.parametrize(
    "line", ['print "loss", `loss`', "except (ValueError, e), (a, b):", 'exec "x" in `ns`']
)
def test_python_2_is_called_by_its_name(line: str) -> None:
    text = f"try:\n    pass\n{line}\n    print 'x'\n" if "except" in line else f"{line}\n"
    assert refusal(text.encode()).endswith("it is written for Python 2")


def test_a_raise_that_is_not_closed_is_no_python_2() -> None:
    assert "Python 2" not in refusal(b"raise ValueError('x'\n")


@pytest.mark.parametrize(
    "statements",
    [
        'print "loss", loss',
        'if loss: print "loss: %f" % (\n        loss), x; print',
        "print >>sys.stderr, loss,",
        'print "a;b:", {1: 2}[1]  # print "this"',
        "try:\n        pass\n    except (ValueError, KeyError), e:\n        raise E, (1, 2)",
        "x, y = 0777, 10L\n    print x <> y",
        'exec "x = 1" in names',
        'x = 1\n\x0c\n    print "page", loss',
        "if loss:\n        print loss\n\tprint x",
    ],
)
def test_python_2_is_read(statements: str) -> None:
    text = f"""\
def train(opt, loss, x):
    {statements}
    for _ in x:
        loss(x).backward()
        opt.step()
"""
    (finding,) = zerograd.check_source(text, filename="old.py")
    line = text.split("\n")[finding.spot.line - 1]
    assert finding.rule.code == "ZG101" and line.strip() == "opt.step()"


def test_null_bytes_are_refused() -> None:
    assert "null bytes" in refusal(b"opt.step()\x00\n")


def test_tabs_and_spaces_mixed_are_refused_where_python_refuses() -> None:
    assert "inconsistent" in refusal(b"if a:\n\tb\n        c\n")


@pytest.mark.parametrize("data", [b"", b"\n", b"   \n\n", b"# only a comment", b"\xef\xbb\xbf"])
def test_empty_files_are_fine(data: bytes) -> None:
    assert read(data).tree.body == []


def test_code_deeper_than_the_recursion_limit_is_read() -> None:
    chain = "if a0: pass\n" + "".join(f"elif a{n}: pass\n" for n in range(1, 900))
    source = read(chain.encode())
    assert isinstance(source.tree.body[0], ast.If)


@pytest.mark.parametrize(
    "text",
    ["(" * 5_000 + ")" * 5_000, "x = " + "-" * 200_000 + "1", "a" + ".b" * 100_000],
    ids=["parentheses", "minus", "attributes"],
)
def test_code_too_deep_for_python_is_refused_in_a_line(text: str) -> None:
    """Each version of Python draws the line elsewhere; none may be brought down."""
    try:
        read(text.encode())
    except UnreadableSourceError as refused:
        assert "\n" not in str(refused)
        assert "not checked" in str(refused)


def test_the_users_own_warnings_are_not_ours_to_give() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(b"pattern = '\\d'\nx = 1 is 1\n")


def test_a_script_for_ipython_is_read_with_its_lines() -> None:
    script = "%matplotlib inline\r\nif ok:\r\n    !ls\r\n    opt.step()\r\n"
    source = read(script.encode())
    step = source.tree.body[-1].body[-1]  # type: ignore[attr-defined]
    assert (source.spot(step).line, source.segment(step)) == (4, "opt.step()")
    assert source.text == script


def test_a_script_for_ipython_that_is_wrong_besides_is_refused_with_the_line() -> None:
    assert refusal(b"!ls\nfor x in\n").startswith(
        f"a.py:2: not checked, {PYTHON} cannot parse it ("
    )
