"""Which clears and steps a batch's own data choose, and which a counter or a switch."""

from __future__ import annotations

import linecache
from textwrap import dedent

import pytest

pytest.importorskip("torch")

from zerograd.lifecycle.events import Spot
from zerograd.runtime.chosen import is_chosen_at

LOOP = """
    for i, x in enumerate(loader):
        loss = model(x).mean()
        loss.backward()
        {before}
        if {test}:
            opt.zero_grad()  # here
        opt.step()
"""
METHOD = """
    class Trainer:
        def after(self, norm, update_now):
            if {test}:
                self.opt.zero_grad()  # here
"""


def is_chosen(text, tmp_path, *, may_leave=True):
    path = tmp_path / "loop.py"
    path.write_text(dedent(text), encoding="utf-8")
    line = next(n for n, each in enumerate(path.read_text().splitlines(), 1) if "# here" in each)
    return is_chosen_at(Spot(str(path), line), may_leave=may_leave)


@pytest.mark.parametrize(
    ("test", "before"),
    [
        ("loss > 5", ""),
        ("loss.item() > 5", ""),
        ("norm > 5", "norm = clip(model.parameters())"),
        ("too_large", "too_large = loss > 5"),
        ("self.loss > 5", "self.loss = loss.item()"),
        ("flag and not isfinite(loss)", ""),
        ("random.random() < 0.1", ""),
        ("x.sum() > 0", ""),
    ],
)
def test_data_choose(test, before, tmp_path):
    assert is_chosen(LOOP.format(test=test, before=before or "pass"), tmp_path)


@pytest.mark.parametrize(
    ("test", "before"),
    [
        ("(i + 1) % 4 == 0", ""),
        ("ends", "ends = (i + 1) % 4 == 0 or i + 1 == len(loader)"),
        ("i > 0", ""),
        ("i + 1 == len(x)", ""),
        ("late", "late = i >= begins"),
        ("ends(i)", ""),
        ("now", "now = ends(i)"),
        ("args.clear", ""),
        ("loss is not None", ""),
        ("self.early", "self.loss = loss.item()"),
        ("epoch == 0", ""),
        ("model.training", ""),
        ("grads", "grads = [p.grad for p in model.parameters() if p.grad is not None]"),
    ],
)
def test_a_counter_or_a_switch_is_no_choice(test, before, tmp_path):
    assert not is_chosen(LOOP.format(test=test, before=before or "pass"), tmp_path)


@pytest.mark.parametrize(
    ("test", "choice"),
    [("norm > 5", True), ("update_now", False), ("self.early", False)],
)
def test_a_method_is_handed_data_or_the_loops_word(test, choice, tmp_path):
    assert is_chosen(METHOD.format(test=test), tmp_path) is choice


def test_what_the_loss_itself_depends_on_chooses_nothing(tmp_path):
    text = """
        for x in loader:
            if x.sum() > 0:
                opt.zero_grad()  # here
                model(x).mean().backward()
                opt.step()
    """
    assert not is_chosen(text, tmp_path)


WAY_OUT = """
    for i, x in enumerate(loader):
        opt.zero_grad()
        {first}
        model(x).mean().backward()
        norm = clip(model.parameters())
        {then}
        opt.step()  # here
"""


@pytest.mark.parametrize("way", ["break", "continue"])
def test_data_choose_who_leaves_a_turn_after_its_backward(way, tmp_path):
    assert is_chosen(WAY_OUT.format(first="pass", then=f"if norm > 10: {way}"), tmp_path)


@pytest.mark.parametrize("way", ["break", "continue"])
def test_a_turn_that_a_counter_ends_or_that_ends_before_its_backward_is_not_chosen(way, tmp_path):
    for text in (
        WAY_OUT.format(first="pass", then=f"if i % 4 != 3: {way}"),
        WAY_OUT.format(first=f"if x.sum() > 0: {way}", then="pass"),
    ):
        linecache.clearcache()
        assert not is_chosen(text, tmp_path)
