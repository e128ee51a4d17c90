"""What the learner reads fits the terminal, and no word is torn."""

import io
import re

import pytest

from zerograd.learn.exercise import catalogue
from zerograd.learn.folder import Folder
from zerograd.learn.grading import Outcome
from zerograd.learn.process import Verdict
from zerograd.learn.screen import KEYS, Screen

CODE = "        (loss_fn(model(x), y) * len(x) / N).backward()"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(params=[50, 80, 200])
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def lines_of(out):
    return [re.sub(r"\x1b\[[0-9;]*[mJKH]|\r", "", line) for line in out.getvalue().split("\n")]


@pytest.mark.parametrize("exercise", catalogue(), ids=lambda one: one.name)
def test_every_text_fits_and_keeps_its_words(exercise, columns, tmp_path):
    out = Terminal()
    screen, folder = Screen(out), Folder.open(tmp_path)
    texts = [exercise.explanation, *exercise.hints, *exercise.demands(), exercise.title, KEYS]
    screen.solved(exercise, folder)
    for level, text in enumerate(exercise.hints, 1):
        screen.hint(level, 3, text)
    screen.verdict(Verdict([Outcome(one, "passed") for one in exercise.demands()]))
    screen.listing(folder)
    screen.keys(folder)
    lines = lines_of(out)
    assert max(map(len, lines)) < min(columns, 80)
    shown = set(" ".join(lines).split())
    assert {word for text in texts for word in text.split()} <= shown


def test_a_list_in_two_columns_keeps_them_where_there_is_room(columns):
    out = Terminal()
    exercise = catalogue()[1]
    Screen(out)._prose(exercise.explanation)
    (row,) = [line for line in lines_of(out) if line.startswith("  zero ")]
    assert row.startswith("  zero    the buffer stays")


def test_a_line_of_the_learners_code_is_not_filled(columns):
    out = Terminal()
    Screen(out)._wrapped("  ", CODE)
    assert lines_of(out)[0].strip() == CODE.strip()


def test_what_says_that_checks_run_fits_in_one_line_and_goes(columns):
    out = Terminal()
    with Screen(out).busy():
        said = lines_of(out)
        assert len(said) == 1 and len(said[0]) < columns and "running the checks" in said[0]
    assert out.getvalue().endswith("\r\x1b[2K")
