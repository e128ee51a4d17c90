"""`zerograd explain`."""

from __future__ import annotations

import pytest

from zerograd.cli.main import main
from zerograd.rules import ALL_RULES


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.code)
def test_every_rule_has_a_page_that_reads_well(rule, capsys):
    assert main(["explain", rule.code]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith(f"{rule.code} {rule.name}")
    assert "```" not in out and "**" not in out.replace("**kw", "")
    assert "\n\n\n\n" not in out


def test_a_name_is_as_good_as_a_code(capsys):
    main(["explain", "stale-gradient"])
    by_name = capsys.readouterr().out
    main(["explain", "zg101"])
    assert capsys.readouterr().out == by_name


def test_several_pages_at_once(capsys):
    assert main(["explain", "ZG101", "ZG102"]) == 0
    out = capsys.readouterr().out
    assert "ZG101 stale-gradient" in out and "ZG102 lost-gradient" in out


def test_an_unknown_rule_prints_nothing_and_exits_2(capsys):
    assert main(["explain", "ZG101", "stale-gradent"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("zerograd: stale-gradent: there is no such rule.\n  Nearest: ZG101")
