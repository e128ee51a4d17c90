"""What a person reads."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

from zerograd.lifecycle.events import Spot
from zerograd.report.reporter import Closing
from zerograd.report.terminal import TerminalReporter
from zerograd.rules import BY_CODE


def text(findings, source, **options):
    out = StringIO()
    TerminalReporter(source=source, **options).write(findings, out)
    return out.getvalue()


def test_a_finding_reads_like_this(golden, stale, source):
    golden("terminal/stale.txt", text([stale], source, closing=Closing("Checked 1 file.")))


def test_findings_of_all_kinds_read_like_this(golden, stale, live, fixable, in_a_notebook, source):
    findings = [fixable, live, in_a_notebook, replace(stale, certain=False)]
    golden("terminal/kinds.txt", text(findings, source))


def test_a_narrow_terminal_wraps_words_and_not_code(golden, live, source):
    golden("terminal/narrow.txt", text([live], source, width=50))


def test_the_first_line_is_what_editors_parse(stale, source):
    assert text([stale], source).splitlines()[0] == "train.py:9:5: ZG101 stale-gradient"


def test_nothing_found_is_said(source):
    words = Closing("Checked 4 files.")
    assert text([], source, closing=words) == "No findings. Checked 4 files.\n"


def test_the_last_line_names_each_rule_once(stale, source):
    other = replace(stale, rule=BY_CODE["ZG501"])
    last = text([other, stale, other], source).splitlines()[-1]
    assert last == "More about a rule: zerograd explain CODE (ZG101, ZG501)"


def test_notes_that_nobody_asked_for_are_counted(stale, source):
    one, two = Closing(hidden=1), Closing(hidden=2)
    assert text([], source, closing=one) == "No findings (1 note hidden; --all shows it).\n"
    assert text([], source, closing=two) == "No findings (2 notes hidden; --all shows them).\n"
    assert "Found 1 error (1 note hidden; --all shows it)." in text([stale], source, closing=one)


def test_a_script_that_failed_is_not_called_clean(stale, source):
    failed = Closing("Watched 3 steps.", ended="The script ended with NameError")
    assert text([], source, closing=failed) == (
        "The script ended with NameError; no findings until then. Watched 3 steps.\n"
    )
    last = text([stale], source, closing=failed)
    assert "Found 1 error. Watched 3 steps. The script ended with NameError." in last


def test_colour_changes_no_letter(stale, live, fixable, source):
    findings = [stale, live, fixable]
    plain = text(findings, source, width=60)
    colored = text(findings, source, width=60, color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_without_source_the_finding_stands(stale):
    shown = text([stale], lambda path, cell: [])
    assert "train.py:9:5" in shown
    assert "fix:" in shown
    assert "|" not in shown


def test_control_characters_in_source_and_paths_are_spelled_out(stale):
    evil = ["\x1b[2Jx = 1", "a\u202eb"] * 5
    named = replace(stale, spot=Spot("a\x1b]0;b\n.py", 9, 1), message="\x07")
    shown = text([named], lambda path, cell: evil)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", shown)
    assert shown.splitlines()[0].startswith(r"a\x1b]0;b\n.py:9:1: ")


def test_the_trail_shows_the_users_own_statements(stale, source):
    shown = text([stale], source)
    assert "line 9 `optimizer.step()` steps; nothing clears the gradients it used" in shown
    assert "→ next iteration: line 8 `loss.backward()` adds onto them" in shown


def test_a_station_in_another_file_names_the_file(stale, source):
    far = replace(stale.trail[1], spot=Spot("other.py", 3, 1))
    shown = text([replace(stale, trail=(stale.trail[0], far))], source)
    assert "other.py:3" in shown
