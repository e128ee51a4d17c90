"""Every exercise is whole: starter, hints, demands, and a starter that does not pass yet."""

import ast

import pytest

from zerograd.errors import UsageError
from zerograd.learn.exercise import catalogue, find
from zerograd.learn.grading import grade_file

EXERCISES = catalogue()


def by_name(exercise):
    return exercise.name


def test_numbers_run_from_one_without_a_gap():
    assert [one.number for one in EXERCISES] == list(range(1, len(EXERCISES) + 1))


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_name)
def test_an_exercise_is_whole(exercise):
    assert len(exercise.hints) == 3
    assert all(hint.strip() for hint in exercise.hints)
    assert exercise.demands(), "no check says what it demands"
    assert ast.get_docstring(ast.parse(exercise.starter())), "the starter does not say the task"
    texts = [exercise.title, exercise.explanation, *exercise.hints, *exercise.demands()]
    assert all(text.isascii() for text in texts), "not every terminal can show it"
    assert max(map(len, exercise.explanation.splitlines())) <= 88


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_name)
def test_the_starter_is_not_solved_yet_and_the_message_is_no_traceback(exercise, tmp_path):
    if exercise.missing():
        pytest.skip(exercise.missing())
    file = tmp_path / exercise.file_name
    file.write_text(exercise.starter(), encoding="utf-8")
    outcomes = grade_file(exercise, file)
    failures = [outcome.message for outcome in outcomes if outcome.state == "failed"]
    assert failures
    assert not any("Traceback" in message for message in failures)
    assert [outcome.demand for outcome in outcomes] == exercise.demands()


@pytest.mark.parametrize(
    "word", ["zero-gradients", "1", "01_zero_gradients.py", "x/01_zero_gradients"]
)
def test_an_exercise_is_found_by_name_number_or_file(word):
    assert find(word).name == "zero-gradients"


def test_an_unknown_exercise_lists_the_known_ones():
    with pytest.raises(UsageError, match="1 zero-gradients"):
        find("zero")
