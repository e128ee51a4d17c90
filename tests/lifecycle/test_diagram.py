"""The drawing says what the table says."""

from __future__ import annotations

import pytest

from zerograd.lifecycle import diagram, machine
from zerograd.lifecycle.diagram import CALLS, draw_moves, draw_table
from zerograd.lifecycle.events import EventKind
from zerograd.lifecycle.machine import AFTER
from zerograd.lifecycle.state import Phase


def test_the_table_is_drawn_whole() -> None:
    head, *rows = draw_table().splitlines()
    assert head.split() == ["after", *(phase.name for phase in Phase)]
    assert len(rows) == len(EventKind)
    for kind, row in zip(EventKind, rows, strict=True):
        assert row.startswith(CALLS[kind])
        assert row.split()[-4:] == [AFTER[kind][phase].name for phase in Phase]


def test_the_moves_read_so() -> None:
    assert draw_moves() == (
        "EMPTY  nothing since the last clear\n"
        "  backward()  -> FRESH\n"
        "  p.grad = g  -> FRESH\n"
        "\n"
        "FRESH  gradients that no step has used\n"
        "  zero_grad()  -> EMPTY\n"
        "  step()       -> SPENT\n"
        "\n"
        "SPENT  gradients that a step has used\n"
        "  zero_grad()  -> EMPTY\n"
        "  backward()   -> STALE\n"
        "  p.grad = g   -> FRESH\n"
        "\n"
        "STALE  new gradients on top of used ones\n"
        "  zero_grad()  -> EMPTY\n"
        "  p.grad = g   -> FRESH\n"
        "  step()       -> SPENT\n"
    )


def test_the_drawing_follows_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw_table()
    wrong = machine.AFTER | {EventKind.CLIP: dict.fromkeys(Phase, Phase.STALE)}
    monkeypatch.setattr(diagram, "AFTER", wrong)
    assert draw_table() != drawn


def test_every_kind_and_every_phase_has_words() -> None:
    assert set(CALLS) == set(EventKind)
    assert set(diagram.HOLDS) == set(Phase)


def test_the_drawing_is_plain_ascii() -> None:
    assert (draw_table() + draw_moves()).isascii()
