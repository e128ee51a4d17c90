"""`zerograd rules`, and how rules are named on the command line."""

from __future__ import annotations

import io
import json
import sys

import pytest

from zerograd.cli.main import main
from zerograd.errors import UnknownRuleError
from zerograd.lifecycle.rule import Severity
from zerograd.rules import ALL_RULES
from zerograd.rules.selection import find_rule, matching, select_rules


def codes(rules):
    return [rule.code for rule in rules]


def test_every_rule_has_its_line(capsys):
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for rule, line in zip(ALL_RULES, lines, strict=False):
        assert line.startswith(f"{rule.code}  {rule.name} ")
        assert rule.severity.value in line


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_on_a_terminal_the_lines_fit(monkeypatch, width):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", Terminal())
    assert main(["rules"]) == 0
    lines = sys.stdout.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.startswith("ZG") for line in lines) == len(ALL_RULES)


def test_json_says_who_sees_a_rule(capsys):
    assert main(["rules", "--format", "json"]) == 0
    shapes = {each["code"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(shapes) == codes(ALL_RULES)
    assert (shapes["ZG601"]["static"], shapes["ZG601"]["live"]) == (False, True)
    assert (shapes["ZG103"]["static"], shapes["ZG103"]["live"]) == (True, False)
    assert all("{" not in each["summary"] for each in shapes.values())


def test_a_prefix_narrows_the_list(capsys):
    assert main(["rules", "ZG6", "tail-lost"]) == 0
    out = capsys.readouterr().out
    assert "ZG601" in out and "ZG502" in out and "ZG101" not in out


def test_an_unknown_word_exits_2(capsys):
    assert main(["rules", "ZG7"]) == 2
    assert "there is no such rule" in capsys.readouterr().err


def test_by_default_notes_are_not_shown():
    assert all(rule.severity is not Severity.NOTE for rule in select_rules())
    assert select_rules(notes=True) == ALL_RULES


def test_what_is_selected_is_shown_whatever_its_severity():
    assert codes(select_rules(["ZG502", "stale-gradient"])) == ["ZG101", "ZG502"]


def test_a_prefix_selects_a_stage():
    stage = [rule.code for rule in ALL_RULES if rule.code.startswith("ZG3")]
    assert codes(select_rules(["ZG3"])) == stage and len(stage) > 1


def test_ignoring_wins():
    assert codes(select_rules(["ZG3"], ["ZG30", "ZG101"])) == []
    assert "ZG101" not in codes(select_rules(ignore=["stale_gradient"]))


def test_words_may_be_joined_by_commas():
    assert codes(select_rules(["ZG101, tail-lost,"])) == ["ZG101", "ZG502"]


@pytest.mark.parametrize("word", ["zg101", "ZG101", "stale-gradient", "Stale_Gradient", " ZG101 "])
def test_a_rule_is_found_however_it_is_written(word):
    assert find_rule(word.strip()).code == "ZG101"
    assert codes(matching(word)) == ["ZG101"]


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("ZG110", "ZG10"),
        ("zg1", "ZG101 .*ZG102 .*ZG103"),
        ("stale-gradents", "ZG101"),
        ("window", "ZG501"),
        ("lost", "ZG102"),
    ],
)
def test_an_unknown_rule_is_answered_with_the_nearest(word, nearest):
    with pytest.raises(UnknownRuleError, match=nearest):
        find_rule(word)


@pytest.mark.parametrize("word", ["", "  ", "E501", "*", "ZG1O1"])
def test_words_that_are_no_rule_are_refused(word):
    with pytest.raises(UnknownRuleError):
        matching(word)


def test_the_message_says_which_option():
    with pytest.raises(UnknownRuleError, match=r"^select ZG999: there is no such rule"):
        select_rules(["ZG999"])
