"""Notes that are shown on request: each line that breaks a rule says so itself.

The files of `notes/` are like those of `loops/`, but here the notes are asked for as well.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import zerograd
from tests.static.test_engine import EXPECTED, SETTING

CASES = {
    f"{file.stem}-{title}": text
    for file in sorted((Path(__file__).parent / "notes").glob("*.txt"))
    for title, text in re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)", file.read_text("utf-8"), re.M | re.S
    )
}


@pytest.mark.parametrize("name", CASES)
def test_the_engine_notes_what_the_loop_says(name: str) -> None:
    source = SETTING + CASES[name]
    expected = {
        (code, number)
        for number, line in enumerate(source.splitlines(), 1)
        for code in EXPECTED.findall(line)
    }
    found = zerograd.check_source(source, f"{name}.py", notes=True)
    assert {(each.rule.code, each.spot.line) for each in found} == expected
