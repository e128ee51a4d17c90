"""The checker and the brute-force interpreter agree on small random programs."""

from __future__ import annotations

import pytest

from benchmarks.accuracy import agreement
from benchmarks.accuracy.agreement import Disagreement, compare
from benchmarks.accuracy.generate_loops import generate

PROGRAMS = 60


@pytest.fixture(scope="module")
def results() -> list[list[Disagreement]]:
    compared = [compare(generate(seed), seed, limit=64) for seed in range(PROGRAMS)]
    return [result for result in compared if result is not None]


def test_nothing_is_reported_that_happens_on_no_path(results: list[list[Disagreement]]) -> None:
    invented = [d for result in results for d in result if d.kind == "invented"]
    assert invented == []


def test_what_happens_on_every_path_is_nearly_always_reported(
    results: list[list[Disagreement]],
) -> None:
    doubtful = [result for result in results if any(d.kind != "invented" for d in result)]
    silent = [result for result in results if any(d.kind == "missed" for d in result)]
    assert len(results) > PROGRAMS // 2
    assert len(doubtful) <= len(results) // 20
    assert len(silent) <= len(results) // 200


def test_a_checker_that_says_nothing_is_seen_to_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "said_by_checker", lambda text: ([], []))
    text = "import torch\nfor x in loader:\n    net(x).sum().backward()\n    opt.step()\n"
    assert [d.kind for d in compare(text) or []] == ["missed"]


def test_a_checker_that_invents_is_seen_to_invent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "said_by_checker", lambda text: ([("ZG101", 3)], []))
    text = "import torch\nfor x in loader:\n    opt.zero_grad()\n    opt.step()\n"
    kinds = {d.kind for d in compare(text) or []}
    assert "invented" in kinds
