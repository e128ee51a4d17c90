"""Every rule has a module and a page, every public name a docstring and an example that runs."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import zerograd
from tests.architecture.imports import modules
from tests.architecture.test_layers import TORCH_ROOMS
from zerograd.lifecycle.rule import PRECEDENCE, Severity
from zerograd.rules import ALL_RULES, BY_CODE, BY_NAME
from zerograd.rules.describe import module_name, page, sentence

PACKAGE = Path(zerograd.__file__).parent
RULES = PACKAGE / "rules"
SECTIONS = [
    "What it means",
    "Why it hurts",
    "Bad",
    "Good",
    "When to allow it",
    "Who sees it and what they miss",
]
NOT_RULES = {"__init__", "describe", "selection", "trails"}


def test_every_rule_module_is_in_the_catalogue():
    written = {path.stem for path in RULES.glob("*.py")} - NOT_RULES
    assert written == {module_name(rule) for rule in ALL_RULES}
    for rule in ALL_RULES:
        assert import_module(f"zerograd.rules.{module_name(rule)}").RULE is rule


def test_every_page_has_a_rule():
    pages = {path.stem for path in RULES.glob("*.md")}
    assert pages <= {module_name(rule) for rule in ALL_RULES}


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.code)
def test_every_rule_has_a_page_with_all_sections(rule):
    text = page(rule)
    assert text is not None, f"write src/zerograd/rules/{module_name(rule)}.md"
    assert text.splitlines()[0] == f"# {rule.code} {rule.name}"
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS


def test_codes_and_names_are_distinct_and_in_order():
    codes = [rule.code for rule in ALL_RULES]
    assert codes == sorted(set(codes))
    assert len(BY_CODE) == len(BY_NAME) == len(ALL_RULES)


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.code)
def test_a_rule_is_named_and_worded_by_the_conventions(rule):
    assert re.fullmatch(r"ZG[1-9]\d\d", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)
    assert isinstance(rule.severity, Severity)
    assert sentence(rule) and "{" not in sentence(rule)
    for text in (rule.summary, rule.advice):
        assert not text.endswith("."), "the reporters end the sentence"


def test_the_sentence_survives_python_without_docstrings(monkeypatch):
    rule = BY_CODE["ZG101"]
    monkeypatch.setattr(import_module("zerograd.rules.stale_gradient"), "__doc__", None)
    assert sentence(rule) == "optimizer.step() uses gradients that an earlier step already used"
    for other in ALL_RULES:
        monkeypatch.setattr(import_module(f"zerograd.rules.{module_name(other)}"), "__doc__", None)
        assert "{" not in sentence(other)


def test_precedence_names_rules_that_exist():
    assert {code for order in PRECEDENCE for code in order} <= set(BY_CODE)


@pytest.mark.parametrize("name", [name for name in zerograd.__all__ if name != "__version__"])
def test_every_public_name_is_documented(name):
    pytest.importorskip("torch", reason="some public names are about torch")
    value = getattr(zerograd, name)
    assert value.__doc__ and value.__doc__.strip()


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'zerograds'"):
        zerograd.zerograds  # noqa: B018


def _has_doctest(path: Path) -> bool:
    return ">>> " in path.read_text(encoding="utf-8") and "exercises" not in path.parts


@pytest.mark.parametrize(
    "name", [name for name, path in modules(PACKAGE) if _has_doctest(path) and "demo" not in name]
)
def test_examples_in_docstrings_run(name):
    if name.split(".")[1] in TORCH_ROOMS:
        pytest.importorskip("torch")
    module = import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed
