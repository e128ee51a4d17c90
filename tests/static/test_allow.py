"""Allow comments applied: what is silenced, and which comments are findings themselves."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.notebooks import notebook
from zerograd.lifecycle.findings import Finding
from zerograd.static.allow import LEFT_TO_SAY
from zerograd.static.check import Asked, Checker, check_source

LOOP = """\
import torch
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x in data:{head}
    model(x).sum().backward()
    opt.step(){step}
"""


def found(head: str = "", step: str = "", **options: bool) -> list[Finding]:
    return check_source(LOOP.format(head=head, step=step), "a.py", **options)  # type: ignore[arg-type]


def codes(findings: list[Finding]) -> list[tuple[str, int]]:
    return [(each.rule.code, each.spot.line) for each in findings]


def test_without_a_comment_it_is_found() -> None:
    assert codes(found()) == [("ZG101", 5)]


@pytest.mark.parametrize(
    "comment",
    [
        "  # zerograd: allow[stale-gradient] sums on purpose",
        "  # zerograd: allow[ZG101] sums on purpose",
        "  # zerograd: allow[ZG1] sums on purpose",
        "  # noqa",
        "  # noqa: ZG101",
        "  # noqa: E501, ZG101",
    ],
)
def test_a_comment_at_the_line_silences_it(comment: str) -> None:
    assert codes(found(step=comment)) == []


def test_a_comment_at_the_loop_silences_it() -> None:
    assert codes(found(head="  # zerograd: allow[stale-gradient] sums on purpose")) == []


def test_a_noqa_at_the_loop_does_not() -> None:
    assert codes(found(head="  # noqa: ZG101")) == [("ZG101", 5)]


def test_a_noqa_for_other_rules_does_not() -> None:
    assert codes(found(step="  # noqa: E501")) == [("ZG101", 5)]


def test_a_comment_without_a_reason_is_a_finding_in_place_of_the_other() -> None:
    (finding,) = found(step="  # zerograd: allow[stale-gradient]")
    assert finding.rule.code == "ZG901"
    assert finding.message == "this comment allows stale-gradient without a reason"
    assert (finding.spot.line, finding.spot.column) == (5, 17)


def test_an_idle_comment_is_a_finding() -> None:
    text = LOOP.format(head="", step="\n    opt.zero_grad()  # zerograd: allow[ZG101] why")
    (finding,) = check_source(text, "a.py")
    assert finding.rule.code == "ZG901"
    assert finding.message == "this comment allows ZG101, which nothing here breaks"
    assert finding.fix is not None
    assert finding.fix.message == "remove the comment"


def test_the_idle_part_of_a_comment_is_named() -> None:
    (finding,) = found(step="  # zerograd: allow[stale-gradient, lost-gradient] why")
    assert finding.message == "this comment allows lost-gradient, which nothing here breaks"
    assert finding.advice == "remove lost-gradient"
    assert finding.fix is None


def test_a_rule_that_only_a_run_can_see_is_never_idle() -> None:
    assert codes(found(step="\n    opt.zero_grad()  # zerograd: allow[rank-desync] known")) == []


def test_an_unknown_rule_is_named() -> None:
    findings = found(step="  # zerograd: allow[stale-gradeint] why")
    assert codes(findings) == [("ZG101", 5), ("ZG901", 5)]
    assert "stale-gradeint: there is no such rule" in findings[1].message


def test_a_comment_in_a_wrong_form_is_named() -> None:
    findings = found(step="  # zerograd: ignore[stale-gradient] why")
    assert codes(findings) == [("ZG101", 5), ("ZG901", 5)]


@pytest.mark.parametrize("word", ["ALL", "ZG"])
def test_a_comment_that_would_allow_everything_is_told_to_name_a_rule(word: str) -> None:
    *_, told = found(step=f"  # zerograd: allow[{word}] why")
    assert told.message == f"this comment allows nothing: {word} names no rule"
    assert told.advice == "name one that `zerograd rules` lists"


def test_a_comment_for_what_is_not_shown_is_not_idle() -> None:
    text = LOOP.format(head="", step="  # zerograd: allow[ZG101] why")
    assert check_source(text, "a.py", ignore=["ZG101"]) == []
    assert check_source(text, "a.py", select=["ZG9"]) == []


def test_an_idle_comment_can_be_allowed_itself() -> None:
    text = LOOP.format(
        head="", step="\n    opt.zero_grad()  # zerograd: allow[ZG101] old  # noqa: ZG901"
    )
    assert check_source(text, "a.py") == []


def test_comments_in_a_notebook_count_within_their_cell() -> None:
    first, second = LOOP.format(head="", step="").split("for", 1)
    cell = f"for{second}".replace("step()", "step()  # zerograd: allow[ZG102] no")
    result = Checker(Asked()).check(notebook(first, cell), "a.ipynb")
    assert [(each.rule.code, each.spot.cell, each.spot.line) for each in result] == [
        ("ZG101", 2, 3),
        ("ZG901", 2, 3),
    ]


def test_removing_idle_comments_leaves_the_rest() -> None:
    text = dedent("""\
        import torch
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        # zerograd: allow[ZG101] old
        for x in data:
            opt.zero_grad()
            model(x).sum().backward()  # zerograd: allow[ZG102] old
            opt.step()  # kept
    """)
    result = Checker(Asked(fix=True)).check(text.encode(), "a.py")
    assert result.fixed["a.py"].data.decode() == text.replace(
        "# zerograd: allow[ZG101] old\n", ""
    ).replace("  # zerograd: allow[ZG102] old", "")


def test_the_reason_that_add_allow_leaves_is_a_reason() -> None:
    assert codes(found(step=f"  # zerograd: allow[stale-gradient] {LEFT_TO_SAY}")) == []
