"""Every block of the tutorial runs, and prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from zerograd.lab.corrections import as_markdown
from zerograd.lab.page import load_recorded
from zerograd.learn.exercise import catalogue

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
OURS = sorted(path.name for path in TUTORIAL.glob("*.md") if path.name != "first-finding.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)


def blocks(page):
    """Yield (code, expected output or None, line) for each python block of a page."""
    text = (TUTORIAL / page).read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for index, match in enumerate(found):
        if match[1] != "python":
            continue
        follower = found[index + 1] if index + 1 < len(found) else None
        between = text[match.end() : follower.start()] if follower else "x"
        shown = follower[2] if follower and follower[1] == "text" and not between.strip() else None
        yield match[2], shown, text[: match.start()].count("\n") + 2


@pytest.mark.parametrize("page", OURS)
def test_a_page_prints_what_it_says(page):
    code = list(blocks(page))
    if any("torch" in text for text, _, _ in code):
        pytest.importorskip("torch")
    space = {"__name__": "lesson"}
    for text, shown, line in code:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * (line - 1) + text, str(TUTORIAL / page), "exec"), space)
        assert out.getvalue() == (shown or ""), f"{page}:{line}"


def test_lesson_0_needs_no_torch_and_fits_into_a_hundred_lines():
    code = [text for text, _, _ in blocks("lesson-0-the-machine-by-hand.md")]
    assert "torch" not in "".join(code)
    assert sum(len(text.splitlines()) for text in code) < 100


def test_seven_steps_three_of_them_predict_first():
    lessons = [page for page in OURS if re.match(r"lesson-[1-7]-", page)]
    assert len(lessons) == 7
    asked = [
        page for page in lessons if "**Predict first.**" in (TUTORIAL / page).read_text("utf-8")
    ]
    assert len(asked) == 3


def test_each_of_the_nine_ways_has_a_place():
    text = (TUTORIAL / "nine-ways.md").read_text(encoding="utf-8")
    ways = re.findall(r"^\| \*\*(\w+)\*\* \|", text, re.M)
    named = "learn why deep visual try challenge project recall performance"
    assert ways == named.split()
    for exercise in catalogue():
        assert f"| {exercise.number} | {exercise.name} |" in text


def test_the_page_of_sayings_is_made_from_the_recorded_runs():
    text = (TUTORIAL / "often-said.md").read_text(encoding="utf-8")
    assert text == as_markdown(load_recorded()), "python -m zerograd.lab.corrections > (the page)"


def test_links_lead_somewhere():
    for page in OURS:
        text = (TUTORIAL / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (TUTORIAL / target).exists() or "reference/" in target, f"{page}: {target}"
