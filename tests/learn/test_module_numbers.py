"""The numbers in the modules' texts are those of the recorded runs."""

from pathlib import Path

import pytest

from zerograd.lab.figures import percent
from zerograd.lab.page import load_recorded
from zerograd.learn.exercise import find

MODULES = Path(__file__).parents[2] / "modules" / "ml" / "systems"
RUNS = load_recorded()
GRID, OVERFLOW, WAYS = RUNS["grid"], RUNS["overflow"], RUNS["poison"]["ways"]
BACKBONE = RUNS["subset"]["backbone"]
RAGGED = percent(RUNS["windows"]["20/20/20/4, divided by 4"])

ORDERS = [row for order, row in RUNS["orders"]["rows"].items() if len(order.split()) == 4]
RIGHT, SHORT, NOTHING = (
    sum(row[kind] for row in ORDERS) for kind in ("right", "one_short", "learns_nothing")
)
RAISED = sum(row["error"] is not None for row in ORDERS)

SAID = {
    "training-loop-order": [
        f"Of the {len(ORDERS)} orders of the four calls in a loop, {RIGHT} are right, {SHORT} are "
        f"right but one update short, {NOTHING} learn nothing and {RAISED} raise"
    ],
    "zero-gradients": [
        f"{GRID['diverged']} of {GRID['pairs']} paired runs diverged, {GRID['worse']} ended worse",
        f"{GRID['better']} ended better",
        "up to 3.20" if "3.20" in RUNS["printed"]["updates_grow"] else "another bound",
    ],
    "none-safe-clear": [f"1.0 to {RUNS['idle_weight']['zero'][-1]:.3f}"],
    "ragged-accumulation": [f"off by {RAGGED} of its norm"],
    "subset-optimizer": [f"{BACKBONE[0]:.2f} to {BACKBONE[-1]:.2f} in 20 steps"],
    "poisoned-buffer": [
        f"ended at {WAYS['zero']['final_loss']:.4f}",
        f"at {WAYS['times zero']['final_loss']:.2f}",
        f"without a clear at {WAYS['nothing']['final_loss']:.2f}",
    ],
    "scaler-overflow": [
        f"final loss of {OVERFLOW['cleared']['final_loss']:.4f}",
        f"{OVERFLOW['forgotten']['skipped']} skipped steps without",
        f"a loss of {OVERFLOW['forgotten']['final_loss']:.2f}",
        f"from 65536 to {OVERFLOW['forgotten']['scales'][-1]:.2g}",
    ],
    "no-sync-window": [f"{RUNS['exchanges']['per_update']['clear once a window']:.0f} all-reduces"],
}


@pytest.mark.parametrize("name", SAID)
def test_a_readme_says_what_was_recorded(name):
    text = " ".join((MODULES / name / "README.md").read_text(encoding="utf-8").split())
    for words in SAID[name]:
        assert words in text


def test_lesson_6_says_why_its_figure_is_another():
    lesson = MODULES.parents[2] / "docs" / "tutorial" / "lesson-6-scalers-windows-ranks.md"
    text = " ".join(lesson.read_text(encoding="utf-8").split())
    assert "depends on the data" in text
    assert f"the small net of `zerograd lab` is off by {RAGGED}" in text


def test_the_explanations_do_too():
    ragged = " ".join(find("ragged-accumulation").explanation.split())
    assert f"off by {RAGGED} of its norm" in ragged
    skipped = OVERFLOW["forgotten"]["skipped"]
    assert f"1 skipped step with a clear and {skipped} without" in " ".join(
        find("scaler-overflow").explanation.split()
    )
