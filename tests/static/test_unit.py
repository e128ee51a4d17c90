"""A module as the engine reads it: what is found by its text is what patterns and walks find."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerograd.static.engine.identity import unit as engine_unit
from zerograd.static.engine.identity.unit import Unit
from zerograd.static.engine.text.places import Places, nodes_on
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.tallied import Tallied
from zerograd.static.source import Source

OURS = sorted(Path(engine_unit.__file__).parent.glob("*.py"))
WORDS = ("n", "nn", "self.n", " ", "  ", "=", "==", "!=", " = ", " += ", "0", "1", ",", ".", "\n")
_NO_PARTS = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)

texts = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)


def unit_of(text: str) -> Unit:
    source = Source.parse("", "a.py")
    source.text = text
    return Unit(source)


@given(text=texts, name=st.sampled_from(("n", "self.n")), number=st.sampled_from((0, 1)))
def test_an_equality_is_found_as_a_pattern_finds_it(text: str, name: str, number: int) -> None:
    test = ast.parse("n > 0", mode="eval").body
    assert isinstance(test, ast.Compare)
    pattern = rf"(?<![\w.]){re.escape(name)} *[=!]= *{number}\b"
    found = unit_of(text).equality(test, name, number)
    assert (found is not None) == bool(re.search(pattern, text))


@given(text=texts)
def test_a_tally_is_found_as_a_pattern_finds_it(text: str) -> None:
    expected = bool(re.search(r"(?<!,)[ .]n = 0\b", text)) if "n += " in text else None
    assert Tallied(Places(text.split("\n"))).is_tallied("n") == expected


CALLS = ("n", "m", ".n", "parameters(", ".parameters(", ".l2_parameters(", "scaler.step(", ")")
calls = st.lists(st.sampled_from((*CALLS, "scaler2.unscale_(", ",", " ", "\n")), max_size=12)


@given(text=calls.map("".join))
def test_whose_methods_are_called_is_found_as_a_pattern_for_each_name_finds_it(text: str) -> None:
    receivers = Unit(Source("a.py", text, ast.Module([], []))).receivers
    for name in ("n", "m", "mn"):
        asked = rf"(?<![\w.]){name}\.(?:\w+\.)*(?:\w+_)?parameters\("
        handed = rf"scaler\w*\.(?:step|unscale_)\(\s*(?:[\w.]+\.)?{name}\s*[,)]"
        assert (name in receivers.with_parameters) == bool(re.search(asked, text))
        assert (name in receivers.by_scalers) == bool(re.search(handed, text))


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_the_parts_of_a_condition_are_those_of_a_walk(path: Path) -> None:
    source = Source.parse(path.read_text(encoding="utf-8"), path.name)
    unit = Unit(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            walked = [each for each in ast.walk(node.test) if not isinstance(each, _NO_PARTS)]
            assert unit.parts_of(node.test) == walked


def test_statements_come_in_the_order_of_a_walk() -> None:
    holders = (ast.stmt, ast.ExceptHandler, ast.match_case)
    choices = "match x:\n case 1:\n  y = lambda: 0\n case _:\n  def f():\n   return 2\n"
    for text in (choices, *(path.read_text(encoding="utf-8") for path in OURS)):
        tree = ast.parse(text)
        walked = [each for each in ast.walk(tree) if isinstance(each, holders)]
        assert list(statements_in(tree.body)) == walked


@pytest.mark.parametrize("word", ["append", "found", "self"])
def test_the_nodes_on_a_words_rows_are_all_that_say_it(word: str) -> None:
    for path in OURS:
        source = Source.read(path.read_bytes(), str(path))
        rows = Unit(source).places.rows(word)
        found = {id(each) for each in nodes_on(rows, source.tree)}
        for each in ast.walk(source.tree):
            if word in (getattr(each, "id", ""), getattr(each, "attr", ""), _name(each)):
                assert id(each) in found
        assert len(found) < sum(1 for _ in ast.walk(source.tree))


def _name(node: ast.AST) -> str:
    return str(getattr(node, "arg", "") or getattr(node, "name", ""))
