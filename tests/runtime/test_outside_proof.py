"""What is said of other people's programs is what was measured, and what was measured is right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.outside.programs import PROGRAMS
from benchmarks.outside.table import PAGE, RESULTS, page_of

PROOF: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))["programs"]


def test_the_page_shows_the_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of(PROOF)


def test_every_result_is_of_a_program_of_the_list() -> None:
    assert PROOF
    assert set(PROOF) <= {f"{program.group}: {program.name}" for program in PROGRAMS}


@pytest.mark.parametrize("name", [name for name in PROOF if "why" not in PROOF[name]])
def test_a_program_ends_and_speaks_as_without_us(name: str) -> None:
    result = PROOF[name]
    assert result["plain"] == result["watched"]
    assert result["same"] is not False
    assert sorted({code for code, _, _ in result["findings"]}) == sorted(result["expects"])
