"""What is measured on, and that the measure is independent of what it measures."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.accuracy.corpus import SPLITS, read_corpus
from benchmarks.accuracy.generate_loops import generate
from benchmarks.accuracy.training_code import find_units, parse, read_source
from benchmarks.scaling import CURVES, program

HARNESS = Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy"


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


PUBLIC = ("checkers", "agreement", "originals")  # those that call the checker


def test_the_harness_knows_the_checker_by_its_public_functions_only() -> None:
    for path in sorted(HARNESS.glob("*.py")):
        ours = {name for name in imports(path) if name.split(".")[0] == "zerograd"}
        allowed = {"zerograd"} if path.stem in PUBLIC else set()
        assert ours <= allowed, path.name


def test_this_test_would_see_an_import_of_the_checker(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("from zerograd.static.check import check_source\n")
    assert imports(file) == {"zerograd.static.check"}


def test_the_corpus_is_pinned_and_split() -> None:
    corpus = read_corpus()
    names = [repository.name for repository in corpus]
    assert len(names) == len(set(names)) >= 24
    assert all(re.fullmatch(r"[0-9a-f]{40}", repository.commit) for repository in corpus)
    parts = Counter(repository.split for repository in corpus)
    assert set(parts) == set(SPLITS)
    assert min(parts.values()) >= 12
    assert parts["fresh-held-out"] >= 60


def test_a_unit_needs_a_backward_a_step_and_a_clear() -> None:
    whole = "def f():\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    assert [unit.name for unit in find_units(whole, Path("m.py"))] == ["m.f"]
    for missing in ("zero_grad", "backward", "step"):
        part = "".join(line for line in whole.splitlines(True) if missing not in line)
        assert find_units(part, Path("m.py")) == []


@pytest.mark.parametrize("receiver", ["scheduler", "lr_scheduler", "env", "profiler"])
def test_the_step_of_something_else_is_no_optimizer_step(receiver: str) -> None:
    text = f"opt.zero_grad()\nloss.backward()\n{receiver}.step()\n"
    assert find_units(text, Path("m.py")) == []


def test_a_closure_belongs_to_the_function_that_steps_with_it() -> None:
    text = (
        "def train():\n    def closure():\n        opt.zero_grad()\n"
        "        loss.backward()\n    opt.step(closure)\n"
    )
    assert [unit.name for unit in find_units(text, Path("m.py"))] == ["m.train"]


def test_a_notebook_is_read_as_one_program(tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(
        '{"cells": [{"cell_type": "code", "source": ["%matplotlib inline\\n", "x = 1"]},'
        ' {"cell_type": "markdown", "source": ["text"]},'
        ' {"cell_type": "code", "source": ["y = 2"]}]}'
    )
    assert read_source(file) == "# %matplotlib inline\nx = 1\n\ny = 2\n"


def test_random_programs_parse_and_repeat() -> None:
    for seed in range(200):
        assert parse(generate(seed)) is not None
    assert generate(7) == generate(7) != generate(8)


@pytest.mark.parametrize("shape", sorted(CURVES))
def test_programs_of_every_shape_parse_and_grow(shape: str) -> None:
    small, large = (program(shape, size) for size in CURVES[shape][:2])
    assert parse(small) is not None and parse(large) is not None
    assert len(small) < len(large)
