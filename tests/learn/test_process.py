"""A learner's file may do anything; the verdict says what, and nothing hangs."""

import time
from dataclasses import replace

import pytest

from zerograd.learn import exercise as exercise_module
from zerograd.learn.exercise import find
from zerograd.learn.process import run_checks

FIRST = replace(find("1"), seconds=5.0)
SOLVED = "def zero_grad(grads):\n    return [0.0] * len(grads)\n"

BAD_FILES = {
    "syntax": ("def zero_grad(grads:\n", "Python cannot read the file: line 1"),
    "empty": ("", "has no function called zero_grad"),
    "raises": (
        "def zero_grad(grads):\n    return [1 / g for g in [0.0]]\n",
        "Line 2 raised ZeroDivisionError",
    ),
    "exits at import": ("import sys\nsys.exit(3)\n", "Line 2 raised SystemExit: 3"),
    "exits for good": ("import os\nos._exit(7)\n", "ended early (exit 7)"),
    "not utf-8": (b"x = '\xff\xfe'\n", "Python cannot read the file"),
    "null byte": (b"x = 1\x00\n", "null bytes"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_cannot_run_fails_with_its_reason(name, tmp_path):
    text, says = BAD_FILES[name]
    file = tmp_path / "x.py"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    failure = run_checks(FIRST, file).failure
    assert failure is not None
    assert says in failure.message


IN_TORCHS_WORDS = {
    "a step before its backward": (
        "3",
        ("loss.backward()\n        optimizer.zero_grad()\n        optimizer.step()",
         "optimizer.step()\n        optimizer.zero_grad()\n        loss.backward()"),
        "a step(), or another change of them, stands between the two",
    ),
    "a gradient asked for its truth": (
        "2",
        ("p.grad.zero_()", "if p.grad: p.grad.zero_()"),
        "is asked by `p.grad is not None`",
    ),
    "a clear that is not called": (
        "3",
        ("loss.backward()\n        optimizer.zero_grad()",
         "optimizer.zero_grad\n        loss.backward()"),
        "Line 24 names `optimizer.zero_grad` and does not call it: write `optimizer.zero_grad()`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_TORCHS_WORDS)
def test_what_torch_says_or_does_not_say_is_put_in_words(name, tmp_path):
    pytest.importorskip("torch")
    number, (old, new), says = IN_TORCHS_WORDS[name]
    exercise = find(number)
    assert old in exercise.starter()
    file = tmp_path / "x.py"
    file.write_text(exercise.starter().replace(old, new))
    failure = run_checks(exercise, file).failure
    assert failure is not None
    assert says in failure.message


def test_in_the_project_slips_are_left_to_find(tmp_path):
    pytest.importorskip("torch")
    project = find("10")
    file = tmp_path / "x.py"
    file.write_text(project.starter())
    messages = [outcome.message for outcome in run_checks(project, file).outcomes]
    assert any(messages) and not any("does not call it" in message for message in messages)


def test_an_endless_loop_is_ended_and_named(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("def zero_grad(grads):\n    while True: pass\n")
    began = time.monotonic()
    failure = run_checks(replace(FIRST, seconds=1.0), file).failure
    assert failure is not None
    assert "Not finished after 1 s" in failure.message
    assert time.monotonic() - began < 60


def test_a_right_file_passes_and_what_it_prints_is_shown(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("print('hello there')\n" + SOLVED)
    verdict = run_checks(FIRST, file)
    assert verdict.passed
    assert verdict.printed == "hello there"


def test_without_torch_the_exercise_says_so_and_is_not_graded(tmp_path, monkeypatch):
    monkeypatch.setattr(exercise_module, "find_spec", lambda name: None)
    second = find("2")
    file = tmp_path / "x.py"
    file.write_text(second.starter())
    verdict = run_checks(second, file)
    assert not verdict.passed
    assert verdict.missing is not None
    assert "pip install 'zerograd[torch]'" in verdict.missing
    assert run_checks(FIRST, file).missing is None, "the first exercise needs no torch"
