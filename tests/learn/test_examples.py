"""The zero_grad examples print what they say, and both witnesses see the one that forgets."""

import ast
import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")

from zerograd import check_source, watch

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "zero_grad_forgotten.py": {"ZG101"},
    "zero_grad_cleared.py": set(),
    "zero_grad_set_to_none.py": set(),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints_what_its_docstring_says(name, capsys):
    doc = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8")))
    shown = re.search(r"prints.*?:\n\n(.*?)\n\n", doc + "\n\n", re.S)[1]
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [line.strip() for line in shown.splitlines()]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_static_witness_sees_what_is_wrong(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert {finding.rule.code for finding in check_source(text, name)} == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_live_witness_sees_what_is_wrong(name, capsys):
    with watch(policy="collect") as seen:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert {finding.rule.code for finding in seen.findings} == EXPECTED[name]
