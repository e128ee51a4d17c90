"""Allow comments: which lines each speaks for."""

from __future__ import annotations

from textwrap import dedent

import pytest

from zerograd.lifecycle.allow import Allowance, read_allowances


def only(text: str) -> Allowance:
    (allowance,) = read_allowances(dedent(text).lstrip("\n"))
    return allowance


def lines(text: str) -> tuple[int, int]:
    allowance = only(text)
    return allowance.first, allowance.last


def test_at_the_end_of_a_statement_it_speaks_for_that_statement() -> None:
    allowance = only("a()\nopt.step()  # zerograd: allow[stale-gradient] by design\nb()\n")
    assert (allowance.line, allowance.column) == (2, 13)
    assert (allowance.first, allowance.last) == (2, 2)
    assert allowance.words == ("stale-gradient",)
    assert allowance.reason == "by design"


def test_alone_it_speaks_for_the_statement_below() -> None:
    text = """
        # zerograd: allow[ZG101] why

        # another comment
        opt.step()
        b()
    """
    assert lines(text) == (4, 4)


def test_in_a_statement_of_several_lines_it_speaks_for_all_of_them() -> None:
    text = """
        opt.step(
            closure,  # zerograd: allow[ZG101] why
        )
        b()
    """
    assert lines(text) == (1, 3)


@pytest.mark.parametrize(
    "header", ["for x in y:", "with a:", "def f():", "if a:", "while True:", "class A:"]
)
def test_on_the_first_line_of_a_block_it_speaks_for_the_block(header: str) -> None:
    text = f"{header}  # zerograd: allow[ZG101] why\n    a()\n    if b:\n        c()\n\nd()\n"
    assert lines(text) == (1, 4)


def test_alone_above_a_block_it_speaks_for_the_block() -> None:
    assert lines("# zerograd: allow[ZG101] why\nfor x in y:\n    a()\nb()\n") == (2, 3)


def test_a_block_at_the_end_of_the_file_is_whole() -> None:
    assert lines("for x in y:  # zerograd: allow[ZG101] why\n    a()\n    b()") == (1, 3)


def test_strings_are_no_comments() -> None:
    assert read_allowances('s = """\n# zerograd: allow[ZG101] no\n"""\nt = "# noqa"\n') == ()


def test_noqa_speaks_for_its_statement_only() -> None:
    allowance = only("for x in y:  # noqa: ZG101,E501 and more\n    a()\n")
    assert (allowance.first, allowance.last) == (1, 1)
    assert allowance.words == ("ZG101", "E501")
    assert allowance.noqa


@pytest.mark.parametrize("comment", ["# noqa", "#noqa", "# NOQA", "# noqa -- known"])
def test_a_bare_noqa_allows_everything(comment: str) -> None:
    allowance = only(f"a()  {comment}\n")
    assert allowance.covers("ZG101", "stale-gradient", 1)
    assert allowance.covers("ZG901", "unused-allow", 1)


def test_codes_starts_of_codes_and_names_are_understood() -> None:
    allowance = only("a()  # zerograd: allow[zg1, tail-lost] why\n")
    assert allowance.covers("ZG104", "absent-gradient-used", 1)
    assert allowance.covers("ZG502", "tail-lost", 1)
    assert not allowance.covers("ZG201", "leaked-gradient", 1)
    assert not allowance.covers("ZG104", "absent-gradient-used", 2)


def test_one_comment_can_say_several_things() -> None:
    text = (
        "a()  # type: ignore  # zerograd: allow[ZG101] one  # zerograd: allow[ZG102] two # noqa\n"
    )
    found = read_allowances(text)
    assert [(each.words, each.reason) for each in found] == [
        (("ZG101",), "one"),
        (("ZG102",), "two"),
        ((), ""),
    ]


@pytest.mark.parametrize(
    ("comment", "fault"),
    [
        ("# zerograd: allow", "it names no rule"),
        ("# zerograd: allow[]", "it names no rule"),
        ("# zerograd: allow stale-gradient", "it names no rule"),
        ("# zerograd: alow[ZG101] x", "`zerograd: alow` means nothing"),
    ],
)
def test_a_comment_in_a_wrong_form_allows_nothing(comment: str, fault: str) -> None:
    allowance = only(f"a()  {comment}\n")
    assert allowance.malformed == fault
    assert not allowance.covers("ZG101", "stale-gradient", 1)


def test_prose_that_begins_with_our_name_is_prose() -> None:
    assert read_allowances("# zerograd: the gradient checker\na()\n") == ()


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_other_line_ends_count_alike(ends: str) -> None:
    text = ends.join(["a()", "b()  # zerograd: allow[ZG101] why", ""])
    (allowance,) = read_allowances(text)
    assert (allowance.line, allowance.first, allowance.last) == (2, 2, 2)


@pytest.mark.parametrize("text", ["(\n# noqa\n", "'''\n# zerograd: allow[ZG101] x", "\x00 # noqa"])
def test_broken_text_raises_nothing(text: str) -> None:
    read_allowances(text)
