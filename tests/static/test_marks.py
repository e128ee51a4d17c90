"""Which conditions an event depends on, however many ways lead to it."""

from __future__ import annotations

import ast

import pytest

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.static.engine.flow import marks
from zerograd.static.engine.identity.ir import Block, Branch, Happening

LEVELS = 16


def event() -> Happening:
    return Happening(EventKind.STEP, None, ast.Pass(), Spot("a.py", 1))  # type: ignore[arg-type]


def called_from_everywhere(inner: Block) -> Block:
    """Put functions around a block, each of which calls the next one on both of two ways."""
    for level in range(LEVELS):
        inner = [Branch(f"a{level}", inner, []), Branch(f"b{level}", inner, [])]
    return inner


def test_what_is_shared_depends_on_what_holds_on_all_ways_to_it() -> None:
    step = event()
    marks.mark_guards([Branch("always", called_from_everywhere([step]), [])])
    assert step.guards == {"always"}
    assert step.inner == {"always", *(f"{way}{level}" for way in "ab" for level in range(LEVELS))}


def test_a_condition_that_some_ways_ask_for_is_no_guard() -> None:
    step = event()
    marks.mark_guards([Branch("some", [step], []), step])
    assert step.guards == set()
    assert step.inner == {"some"}


def test_the_ways_are_not_gone_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0
    mark = marks._mark

    def counted(block: Block, around: object, seen: object) -> None:
        nonlocal visits
        visits += 1
        assert visits < 5_000
        mark(block, around, seen)  # type: ignore[arg-type]

    monkeypatch.setattr(marks, "_mark", counted)
    marks.mark_guards(called_from_everywhere([event()]))
